"""The kind of a cluster, its capabilities and its limits."""
