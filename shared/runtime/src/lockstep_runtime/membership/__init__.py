"""Membership of a process in its service's group, and one service in one flow from start to end."""
