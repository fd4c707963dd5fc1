"""Find in the target's log where a copy continues."""
