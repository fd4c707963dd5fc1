"""Reasons: a code with details, and the sentence of each code."""
