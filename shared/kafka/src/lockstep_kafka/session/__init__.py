"""Connections to brokers on aiokafka's transport, with logins that are renewed."""
