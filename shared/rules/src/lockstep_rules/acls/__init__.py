"""Which ACL bindings a flow copies, and which of them it owns."""
