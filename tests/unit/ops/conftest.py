"""Flows as a file gives them."""

from tests.support.flow_file import file, settings

__all__ = ["file", "settings"]
