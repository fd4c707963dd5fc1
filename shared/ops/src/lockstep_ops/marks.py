"""The marks before findings and steps, the same in all commands."""

FINE, WARNING, FAILED = "✓", "!", "✗"
NOT_DONE = "-"
"""Not checked, or not begun."""
UNDER_WAY, TAKEN_BACK = "…", "↶"
