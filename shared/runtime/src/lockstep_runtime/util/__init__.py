"""Small parts that every layer may use: clocks, timers, memory, digests of files."""
