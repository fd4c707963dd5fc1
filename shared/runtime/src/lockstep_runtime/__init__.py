"""What every Lockstep service runs on: admin, follow, Faust with our settings, pages, metrics, log."""
