"""The ACL bindings that a flow copies, and those that it owns."""
