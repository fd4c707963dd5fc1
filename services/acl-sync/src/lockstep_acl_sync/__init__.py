"""Copies topic ACLs to remote topics."""
