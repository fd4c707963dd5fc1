"""Moves the records, inside Spark tasks."""
