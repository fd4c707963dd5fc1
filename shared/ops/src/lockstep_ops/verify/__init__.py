"""The report of the comparison of both sides of a flow."""
