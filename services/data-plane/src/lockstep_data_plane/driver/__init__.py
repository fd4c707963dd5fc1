"""The driver of a flow: assigns partitions to slots, keeps slots running, reports lag. It moves no record."""
