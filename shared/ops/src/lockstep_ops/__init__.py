"""What the `lockstep` command does, without its command line: plan, doctor, status, switch, takeover, verify."""
