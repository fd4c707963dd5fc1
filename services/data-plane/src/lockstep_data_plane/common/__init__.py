"""Small parts that know nothing of Kafka or Spark: shared work."""
