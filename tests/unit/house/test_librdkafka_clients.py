"""Clients of librdkafka are made in one place, of settings that end each idle connection in time.

`lockstep_client` is a library: it is given its settings, and reads for some seconds."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from lockstep_config.clients.librdkafka import translated
from lockstep_config.keys.client_keys import ClientKind

REPOSITORY = Path(__file__).resolve().parents[3]
CLIENTS = {"Consumer", "Producer", "AdminClient"}
FORGOTTEN_AFTER_MS = 240_000
"""By Azure's load balancer. AWS's remembers a silent connection for 350 s."""


def clients_made(file: Path) -> Iterator[str]:
    """The lines of a module that make a client of confluent-kafka by themselves."""
    tree = ast.parse(file.read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("confluent_kafka")
        for alias in node.names
        if alias.name in CLIENTS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported:
            yield f"{file.relative_to(REPOSITORY)}:{node.lineno}"


def test_clients_of_librdkafka_are_made_by_create_client_alone() -> None:
    files = [file for folder in ("shared", "services") for file in (REPOSITORY / folder).glob("*/src/**/*.py")]
    own = [file for file in files if "lockstep_client" not in file.parts]
    assert len(own) > 300
    assert [line for file in own for line in clients_made(file)] == []


@pytest.mark.parametrize("kind", get_args(ClientKind))
def test_idle_connections_of_librdkafka_end_before_they_are_forgotten(kind: ClientKind) -> None:
    settings = translated({"bootstrap.servers": "a:9092"}, kind).settings
    assert settings["socket.keepalive.enable"] == "true"
    assert int(settings["connections.max.idle.ms"]) < FORGOTTEN_AFTER_MS
