"""The permissions that a flow's connections need, the ends of their certificates, and the secrets in their settings."""
