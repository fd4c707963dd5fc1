"""The base of every Lockstep service: its process, its flows, Faust with our settings, pages, metrics and logs."""
