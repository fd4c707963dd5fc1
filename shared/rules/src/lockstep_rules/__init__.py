"""Pure decisions over the values of `lockstep_state`. They do no I/O and read no clock."""
