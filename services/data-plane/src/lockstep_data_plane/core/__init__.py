"""The rules of one partition: position, phases, appends, gaps, provenance. No I/O, no clock, no configuration."""
