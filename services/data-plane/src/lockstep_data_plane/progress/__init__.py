"""What a slot writes down: rows, events, MM2's progress, offset syncs, latency, spans."""
