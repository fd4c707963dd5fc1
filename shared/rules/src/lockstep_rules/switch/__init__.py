"""Whether clients can move to the target, and the sentences about it."""
