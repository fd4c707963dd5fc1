"""Small parts that know nothing of Kafka or Spark: limits of what is in flight, and shared work."""
