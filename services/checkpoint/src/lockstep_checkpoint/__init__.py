"""Reports the position of each consumer group on the target."""
