"""The checkpoint service: it translates the offsets of consumer groups to the target."""
