"""Offsets that must never be mixed up (style rule: never let two offsets share a type)."""

from __future__ import annotations

from typing import NewType

__all__ = ["DownstreamOffset", "UpstreamOffset"]

UpstreamOffset = NewType("UpstreamOffset", int)
"""An offset in the source's log."""

DownstreamOffset = NewType("DownstreamOffset", int)
"""An offset in the target's log."""
