"""Reading and following of topics, and the control topics."""
