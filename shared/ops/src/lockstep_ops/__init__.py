"""The work of the `lockstep` command without its command line: plan, doctor, status, switch, takeover, verify."""
