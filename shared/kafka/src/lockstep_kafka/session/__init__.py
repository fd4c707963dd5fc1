"""Requests to one broker, or to each: versions, addresses, quotas, clocks, log sizes."""
