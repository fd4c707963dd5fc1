"""Report the comparison of both sides of a flow."""
