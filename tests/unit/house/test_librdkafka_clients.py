"""Clients of librdkafka are made in one place, of settings that end each idle connection in time.

`lockstep_client` is a library: it is given its settings, and reads for some seconds."""

import ast
from collections.abc import Iterator
from typing import get_args

import pytest

from lockstep_config.clients.librdkafka import translated
from lockstep_config.keys.client_keys import ClientKind
from tests.support.source_modules import source_modules

CLIENTS = {"Consumer", "Producer", "AdminClient"}
FORGOTTEN_AFTER_MS = 240_000
"""By Azure's load balancer. AWS's remembers a silent connection for 350 s."""


def clients_made(tree: ast.Module) -> Iterator[int]:
    """The lines of a module that make a client of confluent-kafka by themselves."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("confluent_kafka")
        for alias in node.names
        if alias.name in CLIENTS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported:
            yield node.lineno


def test_clients_of_librdkafka_are_made_by_create_client_alone() -> None:
    modules = [(name, tree) for name, tree in source_modules() if not name.startswith("lockstep_client")]
    assert len(modules) > 300
    assert [f"{name}:{line}" for name, tree in modules for line in clients_made(tree)] == []


@pytest.mark.parametrize("kind", get_args(ClientKind))
def test_idle_connections_of_librdkafka_end_before_they_are_forgotten(kind: ClientKind) -> None:
    settings = translated({"bootstrap.servers": "a:9092"}, kind).settings
    assert settings["socket.keepalive.enable"] == "true"
    assert int(settings["connections.max.idle.ms"]) < FORGOTTEN_AFTER_MS
