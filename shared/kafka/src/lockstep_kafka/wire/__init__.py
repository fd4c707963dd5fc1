"""Connections to brokers: TLS, logins, metadata, leaders, coordinators of transactions."""
