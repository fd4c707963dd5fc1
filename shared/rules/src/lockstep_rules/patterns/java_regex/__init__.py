"""Java's regular expressions in Python's syntax."""
