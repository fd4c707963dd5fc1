"""What the connections of a flow need: permissions, principals, certificates and their ends."""
