"""The data plane, which copies records inside Spark tasks."""
