"""What a service gets for each flow: clients, state, commands, rounds of work, rotation of credentials."""
