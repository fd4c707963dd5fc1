"""Move clients from one side of a flow to the other."""
