"""The readiness of a flow for its clients to move to the target, and the sentences about it."""
