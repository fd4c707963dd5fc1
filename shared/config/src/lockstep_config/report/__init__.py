"""Reports about a configuration: effective values, lines without effect, replication cycles."""
