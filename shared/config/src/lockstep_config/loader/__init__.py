"""A configuration file read, resolved and checked: the way in."""
