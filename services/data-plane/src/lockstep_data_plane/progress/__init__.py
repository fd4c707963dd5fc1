"""The writes of a slot: rows, events, MM2's progress, offset syncs, latency and spans."""
