"""Shows that each flow lives."""
