"""Rows of the state topic: what is so now."""
