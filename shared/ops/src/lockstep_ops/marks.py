"""The marks before findings and steps, the same in all commands."""

FINE, WARNING, FAILED = "✓", "!", "✗"
NOT_DONE = "-"
"""The mark of what was not checked, or has not begun."""
UNDER_WAY, TAKEN_BACK = "…", "↶"
