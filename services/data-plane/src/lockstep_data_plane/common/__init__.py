"""Small parts that know nothing of Kafka or Spark: time-outs, sizes of windows, work that is done once."""
