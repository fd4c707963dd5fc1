"""Errors of clusters, back-off, helpers for asyncio, and spans."""
