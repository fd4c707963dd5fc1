"""Small parts that know nothing of Kafka or Spark: sizes of windows, work that is done once."""
