"""Pure decisions over the values of `lockstep_state`. Nothing here does I/O or reads a clock."""
