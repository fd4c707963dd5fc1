"""Small parts that every layer may use: errors, back-off, clocks, waiting, windows, suspended processes."""
