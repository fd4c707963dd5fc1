"""The rows of the state topic."""
