"""Flows as a file gives them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load

TWO = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
A->B.topics = orders.*
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Return a file with the flow A->B and more lines."""

    def write(*lines: str) -> Path:
        path = tmp_path / "mm2.properties"
        path.write_text(TWO + "\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def settings(file: Callable[..., Path]) -> Callable[..., FlowSettings]:
    """Return the first flow of such a file."""
    return lambda *lines: load(file(*lines), {}).flows[0]
