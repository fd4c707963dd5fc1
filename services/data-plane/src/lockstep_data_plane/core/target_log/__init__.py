"""The search in the target's log for the position from which a copy goes on."""
