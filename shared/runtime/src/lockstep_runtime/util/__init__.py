"""Small parts that every layer may use: clocks, timers, restarts, memory, digests of files."""
