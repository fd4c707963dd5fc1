"""Where a copy continues, as the target's log shows it."""
