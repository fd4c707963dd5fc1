"""Clients, state, commands, periodic work and rotation of credentials for each flow of a service."""
