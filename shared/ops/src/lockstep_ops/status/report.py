"""The report of a flow as one value: a line for each of its parts, and what is in trouble. Pure."""

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
"""The states of a partition whose row says `copying` and that may not be copied.

`unassigned`: no slot that has started has it. `silent`: its slot has not reported lately. `stalled`: the source has
more and the copy does not move. `unknown`: what both logs hold is not known.
"""


AHEAD_ON_TARGET, REWOUND_ON_SOURCE = "ahead on target", "rewound on source"
"""The states of a group whose offset on the target is beyond its place."""

IN_USE, REFUSED, CONTESTED = "in use on target", "refused", "contested"
"""The states of a group that is not moved.

`in use on target`: it has members on the target. `refused`: the target does not take it. `contested`: another flow
feeds the same topic, and the group would skip records of that one.
"""


def combine_if_known(values: Sequence[int | None], combine: Callable[[Iterable[int]], int]) -> int | None:
    """Return the combination of the values, such as their sum, or None if one of them is unknown."""
    known_values = [value for value in values if value is not None]
    return combine(known_values) if len(known_values) == len(values) else None


def largest_or_zero(values: Iterable[int]) -> int:
    """Return the largest value, or 0 if there is none."""
    return max(values, default=0)


class FailableLine:
    """A line of the report that may fail. `cause` says why it does; with `NO_REASON` it does not."""

    __slots__ = ()
    cause: Reason

    @property
    def trouble(self) -> str:
        """Return the sentence of the cause for people, or "" if nothing fails."""
        return format_sentence(self.cause)


@dataclass(frozen=True, slots=True)
class Acting:
    """The replica that acts as `label`, a service or one of its shares of the work, and since when."""

    label: str
    instance: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ServiceLine(FailableLine):
    """A service.

    `wanted` is the desired state of its connector. `replicas` is None if not known. `leaders` are the last ones that
    said they are.
    """

    service: str
    connector: str
    wanted: str
    replicas: int | None
    leaders: tuple[Acting, ...]
    cause: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class TopicLine(FailableLine):
    """A source topic with the sums of its partitions.

    `lag_ms` is the longest of its partitions. It is None if it is unknown of some partition; so is `lag_records`.
    `begun` counts partitions with progress. `phase` is that of its row, or `not begun` if the flow selects it and has
    no row of it yet.
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
    """The rule by which the topic is left out, or is mirrored or renamed as a heartbeats topic."""


@dataclass(frozen=True, slots=True)
class PartitionLine(FailableLine):
    """A source partition.

    `phase` is that of its row, or `not begun`. `state` is what it does now (`partition_status.py`), and `why` the
    reason. `lag_records` is what a reader of the target cannot read yet; None means unknown. `upstream` is the last
    offset that is durable downstream. `written_ms` is when its row was written, or 0 without a row.
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
    """The means by which records are on the target only once: `idempotent` | `transactions` | `read back`.

    It is "" if nothing was copied yet.
    """
    doubled: int = 0
    """Records that were found on the target twice."""
    exact: bool | None = None
    """True if the target has each record from the first start on once. None: nothing was copied yet."""
    delay_ms: int = 0
    """The time that its records stay on the source on purpose (`lockstep.delay`). So much of `lag_ms` is wanted."""
    target_end: int | None = None
    """The next offset of the target's log. None: the target was not asked, or did not say."""
    end: int | None = None
    """The first offset that is not copied any more (`lockstep stop --before`). None: the copy goes on."""

    @property
    def passed_over(self) -> int:
        """Return how many source records never come to the target, as far as they are counted."""
        return self.quarantined + self.given_up + self.target_lost


@dataclass(frozen=True, slots=True)
class SlotLine(FailableLine):
    """A slot of the data plane, as it sees itself.

    `resting` counts partitions of its assignment that are to rest.
    """

    slot: int
    phase: str
    wanted: str
    partitions: int
    resting: int
    held_bytes: int
    cause: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class GroupLine(FailableLine):
    """A consumer group.

    `exact`, `behind` and `waiting` count its partitions. `records` is how many are read again at most, where that is
    known. `why` is the commonest reason for waiting.
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
    """The number of partitions in which the target's group is beyond its place. Its consumers would skip records."""
    rewound_on_source: int = 0
    """The same, because the group went back on the source and the target's did not."""
    held: str = ""
    """The reason why the target's group is not moved: `in-use` | `refused` | `contested`.

    It is "" if it is moved, or if no move was asked for.
    """

    @property
    def readiness(self) -> str:
        """Return the readiness of its least ready partition in one word, or that it fails."""
        if self.cause:
            return REFUSED if self.held == "refused" and self.phase != "failing" else "failing"
        if self.held_back:
            return self.held_back
        if self.waiting or not (self.exact or self.behind):
            return "waiting"
        return "behind" if self.behind else "exact"

    @property
    def is_ready(self) -> bool:
        """Return whether its consumers can work on the target now. If it is behind, they read some records again."""
        return self.readiness in ("exact", "behind")

    @property
    def held_back(self) -> str:
        """Return why the target's group is not where the translation says, in words, or "" if that is unknown."""
        if self.rewound_on_source:
            return REWOUND_ON_SOURCE
        if self.ahead_on_target:
            return AHEAD_ON_TARGET
        return {"in-use": IN_USE, "refused": REFUSED, "contested": CONTESTED}.get(self.held, "")


@dataclass(frozen=True, slots=True)
class AclLine(FailableLine):
    """The state of ACL sync.

    `owned` counts the ACLs on the target that are Lockstep's to revoke, and `revoked` those of them that the source has
    no more. `left_out_for` has pairs of why and how many, `left_out_named` pairs of binding and why. `reason` says why
    the phase is what it is. `notes` are what an operator should know though nothing fails.
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
    """A cluster of the flow: the product that it looks like, and the requests that it lacks.

    The flow can do without these requests.
    """

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
    code: str = ""
    """The code of the reason, which `lockstep explain` knows; "": it has none."""


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """The number of records of a topic that one replica passed over since it began, because they cannot be read."""

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
    """The state of the heartbeats: `beating` | `failing`, or "" before the first one."""
    held_back: tuple[PausedPart, ...]
    troubles: tuple[Trouble, ...]
    switch_blockers: tuple[Blocker, ...] = ()
    """The blockers of a move of clients to the target: causes first, notes behind them."""
    empty_selections: tuple[str, ...] = ()
    """The filters that select nothing, as sentences: topics, groups."""
    unreadable: tuple[UnreadableTopic, ...] = ()
    clusters: tuple[ClusterLine, ...] = ()

    @property
    def switch_ready(self) -> bool | None:
        """Return whether clients can move to the target now, or None if the flow copies nothing by the file."""
        copies = any(line.service == COPIES for line in self.services)
        return is_ready(self.switch_blockers) if copies else None

    @property
    def lag_records(self) -> int | None:
        """Return the lag in records, or None if that of some partition is unknown."""
        return None if self.lag_unknown else self.lag_at_least

    @property
    def lag_at_least(self) -> int:
        """Return the lag in records over the partitions of which it is known."""
        return sum(line.lag_records or 0 for line in self.partitions)

    @property
    def lag_unknown(self) -> int:
        """Return the number of partitions whose lag is unknown."""
        return sum(line.lag_records is None for line in self.partitions)

    @property
    def lag_ms(self) -> int | None:
        """Return the longest lag of all partitions in milliseconds, or None if that of some is unknown."""
        return combine_if_known([line.lag_ms for line in self.partitions], largest_or_zero)

    @property
    def passed_over(self) -> int:
        return sum(line.passed_over for line in self.partitions)

    @property
    def appends(self) -> dict[str, int]:
        """Return the number of partitions by the means that keep their records from being on the target twice."""
        return dict(Counter(line.appends for line in self.partitions if line.appends).most_common())

    @property
    def exact(self) -> bool | None:
        """Return whether the target has each record of all copied partitions once, or None if there is none."""
        verdicts = [line.exact for line in self.partitions if line.exact is not None]
        return all(verdicts) if verdicts else None

    @property
    def not_copying(self) -> dict[str, int]:
        """Return the number of partitions that are not copied now, by their state."""
        return dict(Counter(line.state for line in self.partitions if line.state != COPYING).most_common())

    @property
    def groups_held(self) -> dict[str, int]:
        """Return the number of groups that are not on the target where the translation says, by the reason."""
        return dict(Counter(line.held_back for line in self.groups if line.held_back).most_common())

    @property
    def fine(self) -> bool:
        """Return whether nothing is in trouble.

        Then every partition copies, and it is known how far behind each is. Every group that is moved is at its place.
        """
        return not (self.troubles or self.not_copying or self.lag_unknown or self.groups_held)
