"""What a flow changes, how long its copy takes, and its hazards. Nothing here does I/O."""
