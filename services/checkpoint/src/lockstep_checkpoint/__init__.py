"""Says where each consumer group stands on the target."""
