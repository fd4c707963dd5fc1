"""The needs of a flow's connections: permissions, principals, certificates and their ends."""
