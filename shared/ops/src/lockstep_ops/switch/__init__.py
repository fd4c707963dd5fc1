"""The switch of clients from one side of a flow to the other."""
