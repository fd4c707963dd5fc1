"""A broker that denies whatever is not granted: users come over SASL, and tests go in by the other door, as anonymous
super user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from lockstep_config.permissions import Grant
from tests.harness.acls import add, remove
from tests.harness.broker import Broker, free_port

__all__ = ["GuardedBroker", "login", "without"]

USER, PASSWORD = "lockstep", "lockstep-secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OPERATIONS = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}
RESOURCES = {"cluster": "BROKER", "transactional-id": "TRANSACTIONAL_ID"}


class GuardedBroker(Broker):
    """StandardAuthorizer, nothing allowed by default. `guarded` is where the user `lockstep` logs in (SASL PLAIN),
    `bootstrap` is for tests, who may do everything there."""

    DENYING: ClassVar[dict[str, str]] = {
        "allow.everyone.if.no.acl.found": "false",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": (
            f'{PLAIN} required username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        ),
    }

    def __init__(self, alias: str) -> None:
        super().__init__(alias, authorizer=True, properties=self.DENYING)
        self._guarded_port = free_port()

    @property
    def guarded(self) -> str:
        """Where users log in."""
        return f"127.0.0.1:{self._guarded_port}"

    def grant(self, grants: Iterable[Grant]) -> None:
        """Exactly these, to our user."""
        add(self, *map(_binding, grants))

    def revoke(self, grants: Iterable[Grant]) -> None:
        remove(self, *map(_binding, grants))

    def _listeners(self) -> dict[str, str]:
        settings = super()._listeners()
        for key in ("listeners", "advertised.listeners"):
            settings[key] += f",GUARDED://{self.guarded}"
        settings["listener.security.protocol.map"] += ",GUARDED:SASL_PLAINTEXT"
        return settings


@contextmanager
def without(broker: GuardedBroker, *grants: Grant) -> Iterator[None]:
    """They are taken away, and granted again at the end."""
    broker.revoke(grants)
    try:
        yield
    finally:
        broker.grant(grants)


def login(alias: str, password: str = PASSWORD) -> tuple[str, ...]:
    """Lines of a file by which a cluster's clients log in."""
    return (
        f"{alias}.security.protocol = SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism = PLAIN",
        f'{alias}.sasl.jaas.config = {PLAIN} required username="{USER}" password="{password}";',
    )


def _binding(grant: Grant) -> AclBinding:
    return AclBinding(
        ResourceType[RESOURCES.get(grant.resource, grant.resource.upper())],
        grant.name,
        ResourcePatternType[grant.pattern.upper()],
        f"User:{USER}",
        "*",
        AclOperation[OPERATIONS.get(grant.operation, grant.operation.upper())],
        AclPermissionType.ALLOW,
    )
