"""What is asked of one broker, or of each: versions, addresses, quotas, clocks, log sizes."""
