"""What is said of a configuration: effective values, lines without effect, replication cycles."""
