"""Appends to the target: which request carries which batch, and what each answer means."""
