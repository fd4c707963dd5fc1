"""Logs, metrics, spans and present troubles of a process."""
