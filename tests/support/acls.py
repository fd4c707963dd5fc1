"""ACLs of test clusters, and one flow between two of them for the ACL sync service."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lockstep_state.events import Event
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import AclStatus
from tests.support.broker import Broker
from tests.support.clusters import admin
from tests.support.control import events, last_row
from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess, two_cluster_file

WITHIN = 90.0
"""Seconds for what has to happen; it takes one or two, unless the machine is shared."""

until = partial(wait_until, within=WITHIN)

GUARDS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Properties of a broker that checks permissions, allows what no ACL is about, and has no super user."""

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


def remove(broker: Broker, *bindings: AclBinding) -> None:
    """Delete exactly these ACLs."""
    exactly = [
        AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        for binding in bindings
    ]
    client = admin(broker.bootstrap)
    for future in client.delete_acls(exactly).values():
        future.result(WITHIN)


def remove_all(broker: Broker, resource: str) -> None:
    """Delete every ACL of such resources, of all tests."""
    client = admin(broker.bootstrap)
    for future in client.delete_acls([_about(ResourceType[resource])]).values():
        future.result(WITHIN)


def acls_of(broker: Broker, name: str, resource: str = "TOPIC", pattern: str = "LITERAL") -> set[Words]:
    wanted = _about(ResourceType[resource], name, ResourcePatternType[pattern])
    client = admin(broker.bootstrap)
    bindings = client.describe_acls(wanted).result(WITHIN)
    return {(binding.permission_type.name, binding.operation.name, binding.principal) for binding in bindings}


def _about(
    resource: ResourceType, name: str = ANYBODY, pattern: ResourcePatternType = ResourcePatternType.ANY
) -> AclBindingFilter:
    """Return the filter of what anybody may do, or may not, with these resources."""
    return AclBindingFilter(resource, name, pattern, ANYBODY, ANYBODY, AclOperation.ANY, AclPermissionType.ANY)


@dataclass
class AclScene:
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

    def file(self, *lines: str) -> Path:
        """Return the flow's configuration: of all topics on the clusters it selects those that bear its mark."""
        return two_cluster_file(
            self.folder,
            (self.flow.source, self.a.bootstrap),
            (self.flow.target, self.b.bootstrap),
            f"{self.flow}.enabled = true",
            f"topics = .*-{self.mark}",
            *lines,
        )

    @contextmanager
    def service(self, *lines: str, instance: str = "test") -> Iterator[ServiceProcess]:
        with ServiceProcess("lockstep_acl_sync", self.file(*lines), str(self.flow), instance=instance) as process:
            yield process

    def row(self) -> AclStatus | None:
        row = last_row(self.b.bootstrap, self.flow, "acl/sync")
        return row if isinstance(row, AclStatus) else None

    def in_phase(self, phase: str) -> AclStatus:
        return until(lambda: (row := self.row()) and row.phase == phase and row, what=phase)

    def added(self) -> list[Event]:
        return self.events_of_kind("AclAdded")

    def events_of_kind(self, kind: str) -> list[Event]:
        return events(self.b.bootstrap, self.flow, kind)
