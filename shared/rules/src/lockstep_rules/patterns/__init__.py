"""Java's regular expressions in Python, matched in linear time where that is possible."""
