"""No property of MM2's connectors or of a Connect worker is unknown to us, and defaults are Java's: its own ConfigDefs
are asked."""

from collections.abc import Mapping
from typing import Any

import pytest
from py4j.java_collections import JavaList

from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import KeyStatus, ValueKind
from lockstep_config.keys.mm2_keys import IDENTITY_POLICIES, KEYS
from tests.support.jvm import call

CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
DISTRIBUTED = "org.apache.kafka.connect.runtime.distributed"
OTHERWISE = {
    "tasks.max": "one slot for each core",
    "enabled": "false in a file unless it says so (`mm2-behaviour.md` §5.5)",
    "offset.storage.topic": "a worker's has none; in a file it is named after the source",
    "offset.storage.replication.factor": "not asked of the connectors",
    "transaction.boundary.interval.ms": "the worker's flush interval",
    "group.id": "in a file it is named after the source",
}
"""Defaults that are another here, and why."""


@pytest.fixture(scope="module")
def connectors(java: Any) -> Mapping[str, Any]:
    """Each connector's ConfigDef."""
    return {name: getattr(java.jvm.org.apache.kafka.connect.mirror, name)().config() for name in CONNECTORS}


@pytest.fixture(scope="module")
def worker(java: Any) -> Any:
    crypto = java.jvm.org.apache.kafka.connect.runtime.distributed.Crypto.SYSTEM
    return call(java, f"{DISTRIBUTED}.DistributedConfig", "config", [f"{DISTRIBUTED}.Crypto"], [crypto])


def is_known(name: str) -> bool:
    return name in KEYS or name in CONNECTION or name.startswith(tuple(family.prefix for family in FAMILIES))


def test_every_property_of_the_connectors_is_known(connectors: Mapping[str, Any]) -> None:
    for name, definition in connectors.items():
        assert len(definition.names()) > 90, "the class was asked"
        assert [key for key in definition.names() if not is_known(key)] == [], name


def test_every_property_of_a_worker_is_known(worker: Any) -> None:
    assert len(worker.names()) > 90, "the class was asked"
    of_clients = {name for keys in CLIENT.values() for name in keys}
    assert sorted(key for key in worker.names() if not is_known(key) and key not in of_clients) == []


def as_written(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str() | int():
            return str(value)
        case JavaList():
            return ", ".join(map(str, value))
    return str(value.getName())  # a class


def test_default_class_is_javas_and_each_choice_is_in_a_jar(java: Any, connectors: Mapping[str, Any]) -> None:
    """Of keys that take a class Lockstep stands in for: a name that is in no jar could not run in MirrorMaker."""
    defaults = {
        name: as_written(definition.defaultValues()[name])
        for definition in connectors.values()
        for name in definition.names()
        if name in KEYS and KEYS[name].kind is ValueKind.CLASS and name in definition.defaultValues()
        if not name.endswith(".converter")  # the worker's, which has none unless somebody names one
    }
    assert len(defaults) >= 5
    assert {name: KEYS[name].default or "" for name in defaults} == defaults
    of_others = set(IDENTITY_POLICIES[1:])
    for key in (one for one in KEYS.values() if one.kind is ValueKind.CLASS):
        for name in set(key.choices) - of_others:
            assert java.jvm.java.lang.Class.forName(name).getName() == name, key.name


def test_defaults_are_javas(connectors: Mapping[str, Any], worker: Any) -> None:
    asked = 0
    for definition in (*connectors.values(), worker):
        defaults = definition.defaultValues()
        for name in definition.names():
            key = KEYS.get(name)
            if key is None or key.status is not KeyStatus.USED or name in OTHERWISE or name not in defaults:
                continue
            theirs = as_written(defaults[name])
            ours = key.default or ""
            if key.kind in (ValueKind.LIST, ValueKind.PATTERNS):
                theirs, ours = theirs.replace(", ", ","), ours.replace(", ", ",")
            assert ours.lower() == theirs.lower(), name
            asked += 1
    assert asked > 40
