"""The work inside one Spark task: the partitions of a slot, their fetches, appends and errors."""
