"""Creates remote topics and keeps partitions and configs in step."""
