"""The verbs of commands, their scopes, and the services that answer. Pure.

A command's `subject` is a scope: "" or `flow`, `connector:NAME` by MM2's names, `slot:N`, `topic:T`, `partition:T-N`,
`group:G`. MM2's source connector is topic-sync, acl-sync and data-plane here. Its desired state is in rows of
topic-sync, for the data plane may have no replica while it is stopped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.names import COMMANDS_PARTITIONS

SERVICES = ("topic-sync", "acl-sync", "data-plane", "checkpoint", "heartbeat")


class Connector(Enum):
    """MM2's connectors by their names."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"

    @property
    def owner(self) -> str:
        """The service that writes the connector's desired state, and answers for it."""
        return _ALONE.get(self, "topic-sync")

    @property
    def keeper(self) -> str:
        """The service that knows the connector's source offsets."""
        return _ALONE.get(self, "data-plane")


_ALONE: Mapping[Connector, str] = {Connector.CHECKPOINT: "checkpoint", Connector.HEARTBEAT: "heartbeat"}
"""Connectors that are one service."""


def service_connector(service: str) -> Connector:
    """Return the connector that a service is part of."""
    return next((connector for connector, alone in _ALONE.items() if alone == service), Connector.SOURCE)


class ScopeKind(Enum):
    """The kinds of scopes of commands."""

    FLOW = "flow"
    CONNECTOR = "connector"
    SLOT = "slot"
    TOPIC = "topic"
    PARTITION = "partition"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a command, printed as in a command.

    `name` is the connector, topic or group, `number` the slot or partition.
    """

    kind: ScopeKind
    name: str = ""
    number: int = -1

    def __str__(self) -> str:
        match self.kind:
            case ScopeKind.FLOW:
                return "flow"
            case ScopeKind.SLOT:
                return f"slot:{self.number}"
            case ScopeKind.PARTITION:
                return f"partition:{self.name}-{self.number}"
        return f"{self.kind.value}:{self.name}"

    @property
    def connector(self) -> Connector:
        """The connector whose work it is: the source connector, except for groups and the other connectors."""
        if self.kind is ScopeKind.CONNECTOR:
            return Connector(self.name)
        return Connector.CHECKPOINT if self.kind is ScopeKind.GROUP else Connector.SOURCE

    @property
    def commands_partition(self) -> int:
        """The partition of the commands topic for a command about the scope."""
        return partition_for(self.name.encode(), COMMANDS_PARTITIONS) if self.kind is ScopeKind.GROUP else 0

    @classmethod
    def for_connector(cls, connector: Connector) -> "Scope":
        return cls(ScopeKind.CONNECTOR, connector.value)

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """Parse a scope. Connect's name of a connector, `A->B.MirrorSourceConnector`, is accepted too.

        Raises ValueError with a sentence.
        """
        kind, colon, name = text.partition(":")
        if text in ("", ScopeKind.FLOW.value):
            return FLOW
        try:
            scope_kind = ScopeKind(kind)
        except ValueError:
            scope_kind = None
        if scope_kind is None or scope_kind is ScopeKind.FLOW or not (colon and name):
            raise ValueError(
                f"{text[:LONGEST_SHOWN]!r} is nothing that commands are about: write flow, connector:NAME, slot:N, "
                "topic:T, partition:T-N or group:G"
            )
        if scope_kind is ScopeKind.CONNECTOR:
            return cls(scope_kind, _connector(name))
        if scope_kind is ScopeKind.SLOT:
            return cls(scope_kind, number=_number(name, text))
        if scope_kind is ScopeKind.PARTITION:
            topic, dash, number = name.rpartition("-")
            if not (dash and topic):
                raise ValueError(f"{text!r} names no partition: write partition:TOPIC-NUMBER")
            return cls(scope_kind, topic, _number(number, text))
        return cls(scope_kind, name)


FLOW = Scope(ScopeKind.FLOW)


def _connector(name: str) -> str:
    try:
        return Connector(name.rpartition(".")[2]).value
    except ValueError:
        names = ", ".join(connector.value for connector in Connector)
        raise ValueError(f"there is no connector {name!r}; there are {names}") from None


LONGEST_NUMBER = 10
"""Digits of the number of a partition or a slot, which has 32 bits."""

LONGEST_SHOWN = 300
"""Characters of what was asked that a message repeats: the name of a topic has 249."""


def _number(text: str, scope_text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise ValueError(
            f"{scope_text[:LONGEST_SHOWN]!r} ends in {text[:LONGEST_SHOWN]!r}, which is no number of 32 bits"
        )
    return int(text)


REFRESH = "refresh"
PAUSE = "pause"
RESUME = "resume"
STOP = "stop"
STOP_BEFORE = "stop-before"
RESTART = "restart"
OFFSETS_LIST = "offsets-list"
OFFSETS_ALTER = "offsets-alter"
OFFSETS_RESET = "offsets-reset"
SYNC_GROUPS = "sync-groups"
VERIFY = "verify"

VERIFY_DEPTHS = ("count", "crc", "bytes", "record")
"""The values of `depth`, an argument of VERIFY: how closely copies are compared."""

_CONNECTORS = tuple(connector.value for connector in Connector)
SCOPE_FORMS: Mapping[ScopeKind, tuple[str, str]] = MappingProxyType(
    {
        ScopeKind.FLOW: ("flow", "everything (the default)"),
        ScopeKind.CONNECTOR: ("connector:NAME", f"{', '.join(_CONNECTORS[:-1])} or {_CONNECTORS[-1]}"),
        ScopeKind.SLOT: ("slot:N", "one of the data plane's slots"),
        ScopeKind.TOPIC: ("topic:T", "a topic by its name on the source"),
        ScopeKind.PARTITION: ("partition:T-N", "one of its partitions"),
        ScopeKind.GROUP: ("group:G", "a consumer group"),
    }
)
"""The form of each kind of scope, and its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCommand:
    """A verb with the services that answer it, and the texts of its help and page."""

    verb: str
    answer: str
    """The kind of the event that answers it. A command that is not carried out is answered by `CommandRefused`."""
    scopes: tuple[ScopeKind, ...]
    services: Callable[[Scope], frozenset[str]]
    """The services that answer about a scope, each by an event of its own."""
    changes_desired_state: bool = False
    """The command leads to a row with the desired state of the scope."""
    waits_for_clusters: bool = False
    """The command may wait for a cluster that does not answer, so other commands are carried out beside it."""
    summary: str
    help: str = ""
    example: str = ""


def _owners(scope: Scope) -> frozenset[str]:
    is_flow = scope.kind is ScopeKind.FLOW
    return frozenset(connector.owner for connector in (Connector if is_flow else (scope.connector,)))


def _members(scope: Scope) -> frozenset[str]:
    is_flow = scope.kind is ScopeKind.FLOW
    return frozenset(service for service in SERVICES if is_flow or service_connector(service) is scope.connector)


def _keeper(scope: Scope) -> frozenset[str]:
    return frozenset({scope.connector.keeper})


def _checkpoint(scope: Scope) -> frozenset[str]:
    return frozenset({Connector.CHECKPOINT.owner})


_WORK = (ScopeKind.FLOW, ScopeKind.CONNECTOR, ScopeKind.SLOT, ScopeKind.TOPIC, ScopeKind.PARTITION)
_OFFSETS = (ScopeKind.CONNECTOR,)

VERBS: Mapping[str, ControlCommand] = MappingProxyType(
    {
        command.verb: command
        for command in (
            ControlCommand(
                verb=REFRESH,
                answer="Refreshed",
                scopes=(ScopeKind.FLOW, ScopeKind.CONNECTOR),
                services=_members,
                waits_for_clusters=True,
                summary="Look for topics, groups, ACLs and configs now.",
                help="Do every round of WHAT (flow or connector:NAME) now instead of at its time: look for new topics, "
                "groups, ACLs and configs.",
                example="lockstep refresh mm2.properties",
            ),
            ControlCommand(
                verb=PAUSE,
                answer="Paused",
                scopes=_WORK,
                services=_owners,
                changes_desired_state=True,
                summary="Pause a flow, a connector, a slot or a topic.",
                help="Pause WHAT: its processes and assignments stay, and nothing is done until `lockstep resume`. "
                "The desired state is stored, and holds over restarts and upgrades. Nothing is lost: the copy "
                "continues where it was.",
                example="lockstep pause mm2.properties topic:orders",
            ),
            ControlCommand(
                verb=RESUME,
                answer="Resumed",
                scopes=_WORK,
                services=_owners,
                changes_desired_state=True,
                summary="Resume what was paused or stopped.",
                help="Resume WHAT, where it was. Its topic and connector must run too: a partition of a paused topic "
                "stays paused.",
                example="lockstep resume mm2.properties topic:orders",
            ),
            ControlCommand(
                verb=STOP,
                answer="Stopped",
                scopes=(ScopeKind.FLOW, ScopeKind.CONNECTOR, ScopeKind.SLOT),
                services=_owners,
                changes_desired_state=True,
                summary="Stop a flow, a connector or a slot, until it is resumed.",
                help="Stop WHAT: it drains, writes down how far it is and ends. Offsets may be altered and a flow "
                "handed back to MirrorMaker 2 only while it is stopped. `lockstep resume` starts it again.",
                example="lockstep stop mm2.properties connector:MirrorSourceConnector --flow 'A->B'\n"
                "  lockstep stop mm2.properties topic:orders --before '10m ago' --wait",
            ),
            ControlCommand(
                verb=STOP_BEFORE,
                answer="EndsSet",
                scopes=(ScopeKind.CONNECTOR, ScopeKind.TOPIC),
                services=_owners,
                changes_desired_state=True,
                summary="End the copy at the last record that was first seen before a time.",
            ),
            ControlCommand(
                verb=RESTART,
                answer="Restarted",
                scopes=_WORK,
                services=_owners,
                changes_desired_state=True,
                summary="Restart a part of a flow, such as one that failed.",
                help="Restart WHAT: it drains and begins anew where it was. This also starts what has failed as often "
                "as lockstep.auto.restart.max allows. What is paused or stopped stays so.",
                example="lockstep restart mm2.properties slot:0",
            ),
            ControlCommand(
                verb=OFFSETS_LIST,
                answer="OffsetsListed",
                scopes=_OFFSETS,
                services=_keeper,
                summary="Show all offsets.",
            ),
            ControlCommand(
                verb=OFFSETS_ALTER,
                answer="OffsetsAltered",
                scopes=_OFFSETS,
                services=_keeper,
                summary="Set the offset at which a partition continues.",
            ),
            ControlCommand(
                verb=OFFSETS_RESET,
                answer="OffsetsReset",
                scopes=_OFFSETS,
                services=_keeper,
                summary="Reset offsets, as if nothing had been copied.",
            ),
            ControlCommand(
                verb=SYNC_GROUPS,
                answer="GroupSyncEnded",
                scopes=(ScopeKind.FLOW,),
                services=_checkpoint,
                waits_for_clusters=True,
                summary="Emit checkpoints and move the target's groups now.",
            ),
            ControlCommand(
                verb=VERIFY,
                answer="VerificationStarted",
                scopes=(ScopeKind.FLOW, ScopeKind.TOPIC),
                services=_keeper,
                summary="Compare the copies with their source, up to where they are now.",
            ),
        )
    }
)


class UnknownVerb(ValueError):
    """An error for a verb that no service knows."""

    def __init__(self, verb: str) -> None:
        super().__init__(f"there is no command {verb!r}; there are {', '.join(VERBS)}")


def answering_services(verb: str, scope: Scope) -> frozenset[str]:
    """Return the services that answer a command, each by an event of its own.

    A service that does not run does not answer.

    Raises UnknownVerb, and ValueError with a sentence for a scope that the verb is not for.
    """
    command = VERBS.get(verb)
    if command is None:
        raise UnknownVerb(verb)
    if scope.kind not in command.scopes:
        kinds = ", ".join(kind.value for kind in command.scopes)
        raise ValueError(f"{verb} is not for a {scope.kind.value}: only for {kinds}")
    return command.services(scope)


def owner_of_wanted(scope: str) -> str:
    """Return the service that owns the desired state of a scope. Scopes of a later release are topic-sync's."""
    try:
        return Scope.parse(scope).connector.owner
    except ValueError:
        return Connector.SOURCE.owner
