"""Reading and following a topic, and the control topics."""
