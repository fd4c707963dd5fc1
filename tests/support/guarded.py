"""A broker that denies whatever is not granted: users come over SASL, and tests go in by the other door, as anonymous
super user."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

from confluent_kafka.admin import AclBinding

from lockstep_config.credentials.permissions import Grant
from tests.support.acls import acl, add, remove
from tests.support.broker import Broker, Forwarder
from tests.support.ports import free_port

USERS = ("lockstep", "newcomer")
PASSWORD = "lockstep-secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OPERATIONS = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}
RESOURCES = {"cluster": "BROKER", "transactional-id": "TRANSACTIONAL_ID"}
KNOWN = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)


class GuardedBroker(Broker):
    """StandardAuthorizer, nothing allowed by default. `guarded` is where `USERS` log in (SASL PLAIN), `bootstrap` is
    for tests, who may do everything there."""

    LOGGERS: ClassVar[Mapping[str, str]] = {"kafka.authorizer.logger": "info"}  # tells what it denies
    DENYING: ClassVar[dict[str, str]] = {
        "allow.everyone.if.no.acl.found": "false",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": (
            f'{PLAIN} required username="{USERS[0]}" password="{PASSWORD}" {KNOWN};'
        ),
    }

    def __init__(self, alias: str, *, behind: Forwarder | None = None) -> None:
        super().__init__(alias, authorizer=True, properties=self.DENYING, behind=behind)
        self._guarded_port = free_port()

    @property
    def guarded(self) -> str:
        """Return where users log in."""
        return f"127.0.0.1:{self._guarded_port}"

    def grant(self, user: str, grants: Iterable[Grant]) -> None:
        """Grant exactly these permissions."""
        add(self, *(_binding(user, grant) for grant in grants))

    def revoke(self, user: str, grants: Iterable[Grant]) -> None:
        remove(self, *(_binding(user, grant) for grant in grants))

    def denied(self, user: str) -> list[str]:
        """Return what the broker has refused to that user so far, oldest first, as its log says it. What is left out of
        a list of all topics or groups is not refused."""
        words = f"Principal = User:{user} is Denied"
        return [line for line in self.log.read_text(errors="replace").splitlines() if words in line]

    def _listeners(self) -> dict[str, str]:
        settings = super()._listeners()
        for key in ("listeners", "advertised.listeners"):
            settings[key] += f",GUARDED://{self.guarded}"
        settings["listener.security.protocol.map"] += ",GUARDED:SASL_PLAINTEXT"
        return settings


@contextmanager
def without(broker: GuardedBroker, user: str, *grants: Grant) -> Iterator[None]:
    """Take permissions away, and grant them again at the end."""
    broker.revoke(user, grants)
    try:
        yield
    finally:
        broker.grant(user, grants)


def login(alias: str, user: str) -> tuple[str, ...]:
    """Return lines of a file by which a cluster's clients log in."""
    return (
        f"{alias}.security.protocol = SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism = PLAIN",
        f'{alias}.sasl.jaas.config = {PLAIN} required username="{user}" password="{PASSWORD}";',
    )


def _binding(user: str, grant: Grant) -> AclBinding:
    return acl(
        grant.name,
        OPERATIONS.get(grant.operation, grant.operation.upper()),
        principal=f"User:{user}",
        resource=RESOURCES.get(grant.resource, grant.resource.upper()),
        pattern=grant.pattern.upper(),
    )
