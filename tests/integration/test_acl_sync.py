"""The ACL sync service as a process between real clusters (`mm2.md` §4.6)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lockstep_protocol.events import Event
from lockstep_protocol.names import Flow, state_topic
from lockstep_protocol.state import AclStatus, MirroredTopic
from tests.harness.broker import Broker
from tests.harness.clusters import Record, admin, produce
from tests.harness.control import events, last_row
from tests.harness.eventually import wait_until
from tests.harness.metrics import wait_for_all_declared
from tests.harness.services import ServiceProcess, two_cluster_file

WITHIN = 90.0
"""Seconds for what has to happen; it takes one or two, unless the machine is shared."""

until = partial(wait_until, within=WITHIN)

ANYBODY: Any = None
"""In a filter; the library's types do not know it."""

Words = tuple[str, str, str]
"""Permission, operation, principal."""


def acl(
    name: str,
    operation: str = "READ",
    permission: str = "ALLOW",
    *,
    principal: str = "User:anna",
    resource: str = "TOPIC",
    pattern: str = "LITERAL",
) -> AclBinding:
    return AclBinding(
        ResourceType[resource],
        name,
        ResourcePatternType[pattern],
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


def add(broker: Broker, *bindings: AclBinding) -> None:
    client = admin(broker.bootstrap)
    for future in client.create_acls(list(bindings)).values():
        future.result(WITHIN)


def acls_of(broker: Broker, topic: str) -> set[Words]:
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        ANYBODY,
        ANYBODY,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    client = admin(broker.bootstrap)
    found = client.describe_acls(wanted).result(WITHIN)
    return {(one.permission_type.name, one.operation.name, one.principal) for one in found}


@dataclass
class Scene:
    """One flow between A and B under aliases and topic names that no other test uses."""

    folder: Path
    a: Broker
    b: Broker
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:6])

    def __post_init__(self) -> None:
        self.flow = Flow(f"s{self.mark}", f"t{self.mark}")
        self.topic = f"orders-{self.mark}"

    def remote(self, topic: str = "") -> str:
        return f"{self.flow.source}.{topic or self.topic}"

    @contextmanager
    def service(self, *lines: str) -> Iterator[ServiceProcess]:
        file = two_cluster_file(
            self.folder,
            (self.flow.source, self.a.bootstrap),
            (self.flow.target, self.b.bootstrap),
            f"{self.flow}.enabled = true",
            f"topics = .*-{self.mark}",
            *lines,
        )
        with ServiceProcess("lockstep_acl_sync", file, str(self.flow)) as process:
            yield process

    def row(self) -> AclStatus | None:
        row = last_row(self.b.bootstrap, self.flow, "acl/sync")
        return row if isinstance(row, AclStatus) else None

    def in_phase(self, phase: str) -> AclStatus:
        return until(lambda: (row := self.row()) and row.phase == phase and row, what=phase)

    def added(self) -> list[Event]:
        return events(self.b.bootstrap, self.flow, "AclAdded")


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Scene:
    return Scene(tmp_path, broker_a, broker_b)


@contextmanager
def broker(alias: str, properties: Mapping[str, str], bindings: Iterable[AclBinding] = ()) -> Iterator[Broker]:
    with Broker(alias, properties=properties) as one:
        if bindings:
            add(one, *bindings)
        yield one


def test_mm2_117_118_who_may_read_a_topic_may_read_its_remote_topic(scene: Scene) -> None:
    topic = scene.topic
    add(
        scene.a,
        acl(topic, "READ"),
        acl(topic, "WRITE", principal="User:writer"),
        acl(topic, "ALL", principal="User:owner"),
        acl(topic, "ALL", "DENY", principal="User:gone"),
        acl(topic, "DESCRIBE_CONFIGS", principal="User:anna"),
        acl(topic, "READ", principal="User:prefix", pattern="PREFIXED"),
        acl(f"other-{topic}x", "READ"),
        acl(topic, "READ", resource="GROUP"),
    )
    add(scene.b, acl(scene.remote(), "READ", principal="User:local"))
    with scene.service() as process:
        row = scene.in_phase("in-sync")
        assert acls_of(scene.b, scene.remote()) == {
            ("ALLOW", "READ", "User:anna"),
            ("ALLOW", "DESCRIBE_CONFIGS", "User:anna"),
            ("ALLOW", "READ", "User:owner"),
            ("DENY", "ALL", "User:gone"),
            ("ALLOW", "READ", "User:local"),
        }
        assert row.copied == 4
        assert row.left_out >= 3  # WRITE, PREFIXED, not mirrored; other tests' topics lie on this cluster as well
        assert len(scene.added()) == 4
        assert acls_of(scene.b, scene.remote(f"other-{topic}x")) == set()
        assert psutil.Process(process.pid).memory_info().rss < 120 * 2**20
        assert process.stop() == 0


def test_what_is_there_is_not_added_again_and_nothing_is_revoked(scene: Scene) -> None:
    add(scene.a, acl(scene.topic))
    with scene.service("sync.topic.acls.interval.seconds = 1") as process:
        scene.in_phase("in-sync")
        until(lambda: len(scene.added()) == 1)
        binding = acl(scene.topic)
        selected = AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        client = admin(scene.a.bootstrap)
        for future in client.delete_acls([selected]).values():
            assert future.result(WITHIN)
        process.kill()
        process.start()
        until(lambda: (row := scene.row()) and row.copied == 0)
        assert acls_of(scene.b, scene.remote()) == {("ALLOW", "READ", "User:anna")}
        assert len(scene.added()) == 1


def test_a_new_topic_does_not_wait_for_the_interval(scene: Scene) -> None:
    with scene.service() as process:
        scene.in_phase("in-sync")
        add(scene.a, acl(scene.topic))
        key, value = MirroredTopic(source_topic=scene.topic, target_topic=scene.remote(), partitions=1).encode()
        produce(scene.b.bootstrap, state_topic(scene.flow), [Record(key=key, value=value, partition=0)])
        until(lambda: acls_of(scene.b, scene.remote()) == {("ALLOW", "READ", "User:anna")})
        assert process.said("acl added", subject=scene.remote())
        page = wait_for_all_declared(process, "acl-sync", within=WITHIN)
        assert page["lockstep_acls_added_total"] == [({"flow": str(scene.flow)}, 1)]


def test_a_cluster_without_authorizer_is_a_state_said_once(tmp_path: Path, broker_b: Broker) -> None:
    with broker("bare", {}) as bare:
        scene = Scene(tmp_path, bare, broker_b)
        with scene.service("sync.topic.acls.interval.seconds = 1") as process:
            row = scene.in_phase("no-authorizer")
            assert row.reason.startswith(f"cluster {scene.flow.source} has no authorizer")
            rounds = f'lockstep_rounds_total{{flow="{scene.flow}",round="ACL sync",service="acl-sync"}}'
            until(lambda: float(process.page("/metrics")[1].partition(rounds)[2].split("\n")[0]) >= 3)
            assert len(process.said("ACLs no-authorizer")) == 1
            assert process.ready()


def test_a_missing_permission_names_operation_resource_and_cluster(tmp_path: Path, broker_b: Broker) -> None:
    strict = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    anonymous = partial(acl, "kafka-cluster", principal="User:ANONYMOUS", resource="BROKER")
    with broker("strict", strict, [anonymous("ALL"), anonymous("DESCRIBE", "DENY")]) as one:
        scene = Scene(tmp_path, one, broker_b)
        with scene.service() as process:
            row = scene.in_phase("not-permitted")
            assert row.reason.startswith(f"cluster {scene.flow.source} does not permit DESCRIBE on the cluster")
            assert process.running
