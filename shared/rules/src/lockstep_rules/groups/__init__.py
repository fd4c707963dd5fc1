"""The consumer groups that a flow mirrors, and the offsets that it may commit for them on the target."""
