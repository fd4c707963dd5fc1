"""Spark: its session and configuration, its secrets, its Python daemon. Nothing else imports PySpark."""
