"""The changes of a flow, how long its copy takes, and its hazards. Nothing here does I/O."""
