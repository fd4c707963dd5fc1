"""How a flow is, as one value: a line for each of its parts, and what is in trouble. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lockstep_rules.switch.switch_readiness import is_ready
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.switch_reason import Blocker
from lockstep_state.rows.state_rows import ClusterCapabilities

NOT_BEGUN = "not begun"
"""The phase of a partition that is to be copied and of which the data plane has written nothing yet."""

COPYING = "copying"

COPIES = "data-plane"
"""The service without which a flow copies nothing."""

UNASSIGNED, SILENT, STALLED, UNKNOWN = "unassigned", "silent", "stalled", "unknown"
"""Why a partition whose row says `copying` may not be copied. No slot that has started has it. That slot has not
reported lately. The source has more and the copy does not move. What both logs hold is not known."""


AHEAD_ON_TARGET, REWOUND_ON_SOURCE = "ahead on target", "rewound on source"
"""The state of a group whose offset on the target is beyond its place."""

IN_USE, REFUSED, CONTESTED = "in use on target", "refused", "contested"
"""The state of a group that is not moved: it has members there, or the target does not take it. Or another flow feeds
the same topic, and the group would skip records of that one."""


def sum_if_known(values: Sequence[int | None], together: Callable[[Iterable[int]], int]) -> int | None:
    """What they come to; None where one of them is unknown."""
    found = [value for value in values if value is not None]
    return together(found) if len(found) == len(values) else None


def longest(values: Iterable[int]) -> int:
    """0 of none."""
    return max(values, default=0)


class FailableLine:
    """What may fail. `cause`: why it does; NO_REASON: it does not."""

    __slots__ = ()
    cause: Reason

    @property
    def trouble(self) -> str:
        """Return the sentence of the cause, for people; "" if nothing fails."""
        return format_sentence(self.cause)


@dataclass(frozen=True, slots=True)
class Acting:
    """The replica that acts as `label`, a service or one of its shares of the work, and since when."""

    label: str
    instance: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ServiceLine(FailableLine):
    """A service. `wanted`: of its connector. `replicas` None: not known. `leaders`: the last ones that said so."""

    service: str
    connector: str
    wanted: str
    replicas: int | None
    leaders: tuple[Acting, ...]
    cause: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class TopicLine(FailableLine):
    """A source topic with what its partitions come to. `lag_ms`: the longest; None, as of `lag_records`: of some
    partitions it is unknown. `begun`: partitions with progress. `phase`: its row's, or `not begun` where the flow
    selects it and has no row of it yet.
    """

    topic: str
    remote: str
    phase: str
    wanted: str
    partitions: int
    begun: int
    halted: int
    lag_records: int | None
    lag_ms: int | None
    cause: Reason = NO_REASON
    passed_over: int = 0
    """Records quarantined, and offsets given up or lost on the target: they never come, and are not behind."""
    note: str = ""
    """By which rule it is left out, or is mirrored or renamed as a heartbeats topic."""


@dataclass(frozen=True, slots=True)
class PartitionLine(FailableLine):
    """A source partition. `phase`: its row's, or `not begun`; `state`: what it does now (`partition_status.py`), and
    `why`. `lag_records`: what a reader of the target cannot read yet; None: unknown. `upstream`: last offset that is
    durable downstream. `written_ms`: when its row was written, 0 where there is none.
    """

    topic: str
    partition: int
    phase: str
    wanted: str
    lag_records: int | None
    lag_ms: int | None
    upstream: int
    source_end: int
    slot: int
    written_ms: int
    case: str = ""
    cause: Reason = NO_REASON
    state: str = NOT_BEGUN
    why: str = ""
    quarantined: int = 0
    given_up: int = 0
    target_lost: int = 0
    appends: str = ""
    """What keeps records from being on the target twice: `idempotent` | `transactions` | `read back`; "" where nothing
    was copied yet."""
    doubled: int = 0
    """Records that were found on the target twice."""
    exact: bool | None = None
    """Whether the target has each record from the first start on once; None: nothing was copied yet."""

    @property
    def passed_over(self) -> int:
        """What of the source never comes to the target, as far as it is counted."""
        return self.quarantined + self.given_up + self.target_lost


@dataclass(frozen=True, slots=True)
class SlotLine(FailableLine):
    """A slot of the data plane, as it sees itself. `resting`: partitions of its assignment that are to rest."""

    slot: int
    phase: str
    wanted: str
    partitions: int
    resting: int
    held_bytes: int
    cause: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class GroupLine(FailableLine):
    """A consumer group: `exact`, `behind`, `waiting` count its partitions. `records`: how many are read again at most,
    where that is known. `why`: the commonest reason for waiting.
    """

    group: str
    phase: str
    exact: int
    behind: int
    records: int
    waiting: int
    synced: bool
    why: str = ""
    cause: Reason = NO_REASON
    ahead_on_target: int = 0
    """Partitions in which the target's group is beyond its place: a consumer that continues there skips records."""
    rewound_on_source: int = 0
    """The same, because the group went back on the source and the target's did not."""
    held: str = ""
    """Why the target's group is not moved: `in-use` | `refused` | `contested`; "" if it is, or if no move was asked
    for."""

    @property
    def readiness(self) -> str:
        """The least ready of its partitions in one word, or that it fails."""
        if self.cause:
            return REFUSED if self.held == "refused" and self.phase != "failing" else "failing"
        if self.held_back:
            return self.held_back
        if self.waiting or not (self.exact or self.behind):
            return "waiting"
        return "behind" if self.behind else "exact"

    @property
    def held_back(self) -> str:
        """Why the target's group is not where the translation says, in words; "" where that is unknown."""
        if self.rewound_on_source:
            return REWOUND_ON_SOURCE
        if self.ahead_on_target:
            return AHEAD_ON_TARGET
        return {"in-use": IN_USE, "refused": REFUSED, "contested": CONTESTED}.get(self.held, "")


@dataclass(frozen=True, slots=True)
class AclLine(FailableLine):
    """The state of ACL sync. `owned`: those on the target that are ours to take back, `revoked` those of them that the
    source has no more. `left_out_for`: (why, how many), `left_out_named`: (binding, why). `reason`: why the phase is
    what it is; `notes`: what an operator should know though nothing fails.
    """

    phase: str
    copied: int
    left_out: int
    owned: int = 0
    revoked: int = 0
    left_out_for: tuple[tuple[str, int], ...] = ()
    left_out_named: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    cause: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """A cluster of the flow: what it looks like, and the requests without which the flow goes on there."""

    alias: str
    product: str
    lacks: tuple[str, ...] = ()

    def __str__(self) -> str:
        without = f" without {', '.join(self.lacks)}" if self.lacks else ""
        return f"{self.alias} is like {self.product}{without}"


def cluster_lines(rows: Iterable[ClusterCapabilities]) -> tuple[ClusterLine, ...]:
    """Return the lines of these rows, by alias."""
    return tuple(sorted((ClusterLine(row.alias, row.product, row.lacks) for row in rows), key=lambda line: line.alias))


@dataclass(frozen=True, slots=True)
class PausedPart:
    """Something that an operator or the file paused or stopped."""

    scope: str
    """Such as `topic:orders` or `connector:MirrorSourceConnector`."""
    wanted: str
    """`paused` | `stopped`."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that does not go on by itself, or fails again and again."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """Hold how many records of a topic one replica passed over since it began, because they cannot be read."""

    service: str
    instance: str
    topic: str
    count: int


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
    held_back: tuple[PausedPart, ...]
    troubles: tuple[Trouble, ...]
    switch_blockers: tuple[Blocker, ...] = ()
    """What prevents that clients move to the target, causes first, and notes behind them."""
    empty_selections: tuple[str, ...] = ()
    """What the filters select nothing of, as sentences: topics, groups."""
    unreadable: tuple[UnreadableTopic, ...] = ()
    clusters: tuple[ClusterLine, ...] = ()

    @property
    def switch_ready(self) -> bool | None:
        """Whether clients can move to the target now; None: the flow copies nothing, by the file."""
        copies = any(line.service == COPIES for line in self.services)
        return is_ready(self.switch_blockers) if copies else None

    @property
    def lag_records(self) -> int | None:
        """None: of some partitions it is unknown."""
        return None if self.lag_unknown else self.lag_at_least

    @property
    def lag_at_least(self) -> int:
        """Over the partitions of which it is known."""
        return sum(line.lag_records or 0 for line in self.partitions)

    @property
    def lag_unknown(self) -> int:
        """Partitions whose lag is unknown."""
        return sum(line.lag_records is None for line in self.partitions)

    @property
    def lag_ms(self) -> int | None:
        """The longest of all partitions; None: of some it is unknown."""
        return sum_if_known([line.lag_ms for line in self.partitions], longest)

    @property
    def passed_over(self) -> int:
        return sum(line.passed_over for line in self.partitions)

    @property
    def appends(self) -> dict[str, int]:
        """Partitions by what keeps their records from being on the target twice."""
        return dict(Counter(line.appends for line in self.partitions if line.appends).most_common())

    @property
    def exact(self) -> bool | None:
        """Whether the target has each record once, of all partitions that are copied; None: there is none."""
        known = [line.exact for line in self.partitions if line.exact is not None]
        return all(known) if known else None

    @property
    def not_copying(self) -> dict[str, int]:
        """Partitions that are not copied now, by their state."""
        return dict(Counter(line.state for line in self.partitions if line.state != COPYING).most_common())

    @property
    def groups_held(self) -> dict[str, int]:
        """Groups that are not on the target where the translation says, by why."""
        return dict(Counter(line.held_back for line in self.groups if line.held_back).most_common())

    @property
    def fine(self) -> bool:
        """Nothing is in trouble, every partition copies, and it is known how far behind each is. Every group that is
        moved is at its place.
        """
        return not (self.troubles or self.not_copying or self.lag_unknown or self.groups_held)
