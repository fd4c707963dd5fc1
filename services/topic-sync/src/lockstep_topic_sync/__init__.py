"""The topic-sync service: it creates remote topics and keeps their partitions and configs in step."""
