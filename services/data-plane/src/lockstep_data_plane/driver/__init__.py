"""The driver of a flow: it assigns partitions to slots, keeps the slots running, and reports lag."""
