"""Which consumer groups a flow mirrors, and which offsets it may commit for them on the target."""
