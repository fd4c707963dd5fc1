"""The state of flows, from the rows of their state topics and from both clusters' logs."""
