"""Small parts that know nothing of Kafka or Spark: back-off, time-outs, timers, assignment of partitions to slots."""
