"""Reads what the plan of a flow needs to know about its clusters."""
