"""A cluster as services use it: administration, reading and following topics, writing control topics, logins."""
