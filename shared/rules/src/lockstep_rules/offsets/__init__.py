"""Offset runs, offset syncs and the translation of offsets; lag, and the policy for gaps in a log."""
