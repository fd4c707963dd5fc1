"""How a flow is, as one value: a line for each of its parts, and what is in trouble. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "NOT_BEGUN",
    "AclLine",
    "Acting",
    "GroupLine",
    "HeldBack",
    "PartitionLine",
    "Report",
    "ServiceLine",
    "SlotLine",
    "TopicLine",
    "Trouble",
]

NOT_BEGUN = "not begun"
"""The phase of a partition that is to be copied and of which the data plane has written nothing yet."""


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts as `label`, a service or one of its shares of the work, and since when."""

    label: str
    instance: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """A service. `wanted`: of its connector. `replicas` None: not known. `leaders`: the last ones that said so."""

    service: str
    connector: str
    wanted: str
    replicas: int | None
    leaders: tuple[Acting, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A source topic with what its partitions come to. `lag_ms`: the longest. `begun`: partitions with progress."""

    topic: str
    remote: str
    phase: str
    wanted: str
    partitions: int
    begun: int
    halted: int
    lag_records: int
    lag_ms: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A source partition. `phase`: its row's, or `not begun`. `upstream`: last offset that is durable downstream.
    `written_ms`: when its row was written, 0 where there is none."""

    topic: str
    partition: int
    phase: str
    wanted: str
    lag_records: int
    lag_ms: int
    upstream: int
    source_end: int
    slot: int
    written_ms: int
    case: str = ""
    trouble: str = ""

    @property
    def state(self) -> str:
        """Its phase, or what is wanted of it where that holds it back."""
        return self.phase if self.phase == "halted" or self.wanted == "running" else self.wanted


@dataclass(frozen=True, slots=True)
class SlotLine:
    """A slot of the data plane, as it sees itself. `resting`: partitions of its assignment that are to rest."""

    slot: int
    phase: str
    wanted: str
    partitions: int
    resting: int
    held_bytes: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A consumer group: `exact`, `behind`, `waiting` count its partitions; `records`: how many are read again at most,
    where that is known; `why`: the commonest reason for waiting."""

    group: str
    phase: str
    exact: int
    behind: int
    records: int
    waiting: int
    synced: bool
    why: str = ""
    trouble: str = ""

    @property
    def readiness(self) -> str:
        """The least ready of its partitions in one word, or that it fails."""
        if self.trouble:
            return "failing"
        if self.waiting or not (self.exact or self.behind):
            return "waiting"
        return "behind" if self.behind else "exact"


@dataclass(frozen=True, slots=True)
class AclLine:
    """How ACL sync stands. `owned`: those on the target that are ours to take back, `revoked` those of them that the
    source has no more. `left_out_for`: (why, how many), `left_out_named`: (binding, why). `reason`: why the phase is
    what it is; `notes`: what an operator should know though nothing fails."""

    phase: str
    copied: int
    left_out: int
    owned: int = 0
    revoked: int = 0
    left_out_for: tuple[tuple[str, int], ...] = ()
    left_out_named: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Something that an operator or the file paused or stopped (`wanted`)."""

    scope: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that does not go on by itself, or fails again and again."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything about one flow at `at_ms`. Lists are in the order of names and numbers."""

    flow: str
    at_ms: int
    services: tuple[ServiceLine, ...]
    topics: tuple[TopicLine, ...]
    partitions: tuple[PartitionLine, ...]
    slots: tuple[SlotLine, ...]
    groups: tuple[GroupLine, ...]
    acls: AclLine | None
    heartbeat: str
    """`beating` | `failing`; "" before the first beat."""
    held_back: tuple[HeldBack, ...]
    troubles: tuple[Trouble, ...]

    @property
    def lag_records(self) -> int:
        return sum(line.lag_records for line in self.topics)

    @property
    def lag_ms(self) -> int:
        """The longest of all partitions."""
        return max((line.lag_ms for line in self.topics), default=0)
