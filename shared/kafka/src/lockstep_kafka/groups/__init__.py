"""Coordinators of consumer groups, and the groups' protocols."""
