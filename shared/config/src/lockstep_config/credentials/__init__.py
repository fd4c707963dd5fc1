"""What a flow's connections need: permissions, principals' conflicts, certificates and their ends."""
