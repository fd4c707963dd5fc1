"""Which replica may act for a service in a flow (`architecture.md` §4, `kafka-wire.md` §7). Pure: no clock, no Kafka.

Theory. Holding a partition of the commands topic makes a replica *candidate* for it. It then appends `leader/<label>`
to the state topic; that record's offset is its *term*. It begins to *lead* the partition once it has read its own
record back, and with it every record before it. It leads as long as it has not read a later leader record of the same
label. It *acts* while it leads and has heard from its group within half the session time-out. A revoked partition is
given up at once. Nothing here is a lock: every act is conditional and idempotent besides.

    IDLE --assigned--> CLAIMING --own record read back--> LEADING
    CLAIMING/LEADING --revoked--> IDLE
    LEADING --later leader record of another read--> CLAIMING (claims anew: it still holds the partition)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_state.commands.command_vocabulary import SERVICES

SESSION_TIMEOUT = 6.0
"""Seconds without a heartbeat after which the group takes partitions away. Brokers allow 6 and more
(`group.min.session.timeout.ms`); with the rebalance and the claim behind it another replica acts within 10."""

HEARTBEAT_EVERY = 1.0
"""Seconds between heartbeats: five may fail before a place is lost."""

HEARTBEAT_VALID_S = SESSION_TIMEOUT / 2
"""Seconds since the last heartbeat the group answered beyond which we no longer act: half the time-out leaves the
rest for
acts under way."""


class LeadPhase(Enum):
    """Where a replica stands for one partition of the commands topic."""

    IDLE = "standing by"
    CLAIMING = "claiming"
    LEADING = "leading"


def leader_label(service: str, partition: int, *, divided: bool) -> str:
    """The `service` of a leader row: one for the service, or one for each commands partition where replicas divide
    the work.
    """
    return f"{service}-{partition}" if divided else service


def label_service(label: str) -> str:
    """The service that a label is of: `checkpoint-3` is checkpoint's."""
    return next((name for name in SERVICES if label == name or label.removeprefix(f"{name}-").isdigit()), label)


@dataclass(slots=True)
class _Claim:
    phase: LeadPhase = LeadPhase.CLAIMING
    term: int = -1


class Leadership:
    """One replica's standing in one flow. `divided`: replicas divide the work by commands partition; else partition 0
    is all of it.
    """

    def __init__(self, service: str, *, divided: bool = False) -> None:
        self._service = service
        self._divided = divided
        self._held: frozenset[int] = frozenset()
        self._claims: dict[int, _Claim] = {}
        self._highest: dict[str, tuple[int, str]] = {}
        self._claimants: dict[str, dict[str, int]] = {}
        """The last claim of each instance, by label."""

    @property
    def held(self) -> frozenset[int]:
        """Partitions of the commands topic the group gave us."""
        return self._held

    def assigned(self, partitions: Iterable[int]) -> None:
        """The group's new assignment, complete. What is not in it is given up."""
        self._held = frozenset(partitions)
        candidates = self._held if self._divided else self._held & {0}
        self._claims = {p: self._claims.get(p, _Claim()) for p in candidates}

    def reset(self) -> None:
        """The state topic is read anew, perhaps another one under the same name: offsets read so far mean nothing."""
        self._highest.clear()
        self._claimants.clear()
        self._claims.clear()
        self._held = frozenset()

    def unclaimed_partitions(self) -> tuple[int, ...]:
        """Partitions for which a leader row has to be appended now."""
        return tuple(sorted(p for p, c in self._claims.items() if c.phase is LeadPhase.CLAIMING and c.term < 0))

    def claimed(self, partition: int, term: int) -> None:
        """Our leader row was acknowledged at offset `term`. Ignored when the partition was given up meanwhile."""
        claim = self._claims.get(partition)
        if claim is None:
            return
        claim.term = term
        self._judge(partition)

    def read_claim(self, label: str, instance: str, offset: int) -> None:
        """A leader row was read from the state topic. Reading one twice, or out of order, changes nothing."""
        if offset <= self._highest.get(label, (-1, ""))[0]:
            return
        self._highest[label] = (offset, instance)
        self._claimants.setdefault(label, {})[instance] = offset
        for partition in self._claims:
            if leader_label(self._service, partition, divided=self._divided) == label:
                self._judge(partition)

    def _judge(self, partition: int) -> None:
        claim = self._claims[partition]
        highest, _ = self._highest.get(leader_label(self._service, partition, divided=self._divided), (-1, ""))
        if claim.term < 0:
            return
        if highest == claim.term:
            claim.phase = LeadPhase.LEADING
        elif highest > claim.term:
            # Somebody claimed after us while we hold the partition: the group decides, so claim again.
            self._claims[partition] = _Claim()

    def lead_phase(self, partition: int = 0) -> LeadPhase:
        claim = self._claims.get(partition)
        return LeadPhase.IDLE if claim is None else claim.phase

    def leads(self, partition: int = 0) -> bool:
        return self.lead_phase(partition) is LeadPhase.LEADING

    def leading(self) -> frozenset[int]:
        """Partitions we lead."""
        return frozenset(p for p in self._claims if self.leads(p))

    def term(self, partition: int = 0) -> int:
        """The term in which we lead the partition, 0 while we do not."""
        return self._claims[partition].term if self.leads(partition) else 0

    def leading_term(self, label: str) -> int:
        """The term in which we lead under a label (`leader_label`), 0 while we do not."""
        ours = (p for p in self._claims if leader_label(self._service, p, divided=self._divided) == label)
        return max(map(self.term, ours), default=0)

    def claimed_by_others(self, term: int, instance: str) -> bool:
        """Whether another than this instance has claimed after `term`, as far as read; also one who was succeeded."""
        claimants = self._claimants.get(leader_label(self._service, 0, divided=self._divided), {})
        return any(offset > term for other, offset in claimants.items() if other != instance)

    def leader(self, partition: int = 0) -> str:
        """The instance that claimed last, as far as read; "" when none has."""
        return self._highest.get(leader_label(self._service, partition, divided=self._divided), (-1, ""))[1]
