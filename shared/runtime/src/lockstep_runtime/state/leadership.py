"""Which replica may act for a service in a flow (`architecture.md` §4, `kafka-wire.md` §7). Pure.

A replica that holds a partition of the commands topic is a *candidate* for it. It then appends `leader/<label>` to
the state topic; the offset of that record is its *term*. It begins to *lead* the partition once it has read its own
record back, and with it every record before it. It leads as long as it has not read a later leader record of the same
label. It *acts* while it leads and its group has answered within half the session timeout. A revoked partition is
given up at once. Nothing here is a lock: every act is conditional and idempotent besides.

    IDLE --assigned--> CLAIMING --own record read back--> LEADING
    CLAIMING/LEADING --revoked--> IDLE
    LEADING --later leader record of another read--> CLAIMING (claims again: it still holds the partition)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_state.commands.command_vocabulary import SERVICES

SESSION_TIMEOUT = 6.0
"""Seconds without a heartbeat after which the group takes partitions away.

Brokers allow 6 and more (`group.min.session.timeout.ms`). With the rebalance and the claim behind it another replica
acts within 10.
"""

HEARTBEAT_EVERY = 1.0
"""Seconds between heartbeats: five may fail before the group removes the member."""

HEARTBEAT_VALID_S = SESSION_TIMEOUT / 2
"""Seconds after the last answered heartbeat for which a replica may act: half the session timeout.

The other half is for acts under way.
"""


class LeadershipState(Enum):
    """States of a replica's leadership of one partition of the commands topic."""

    IDLE = "standing by"
    CLAIMING = "claiming"
    LEADING = "leading"


def leader_label(service: str, partition: int, *, divided: bool) -> str:
    """Return the `service` of a leader row: one for the service, or one for each commands partition of divided work."""
    return f"{service}-{partition}" if divided else service


def label_service(label: str) -> str:
    """Return the service of a label: `checkpoint-3` is checkpoint's."""
    return next((name for name in SERVICES if label == name or label.removeprefix(f"{name}-").isdigit()), label)


@dataclass(slots=True)
class _Claim:
    state: LeadershipState = LeadershipState.CLAIMING
    term: int = -1


class Leadership:
    """One replica's leadership in one flow."""

    def __init__(self, service: str, *, divided: bool = False) -> None:
        """Take the service. `divided`: each commands partition is a share of the work; else partition 0 is all."""
        self._service = service
        self._divided = divided
        self._held: frozenset[int] = frozenset()
        self._claims: dict[int, _Claim] = {}
        self._highest: dict[str, tuple[int, str]] = {}
        self._claimants: dict[str, dict[str, int]] = {}
        """The last claim of each instance, by label."""

    @property
    def held(self) -> frozenset[int]:
        """Return the partitions of the commands topic that the group has assigned."""
        return self._held

    def assigned(self, partitions: Iterable[int]) -> None:
        """Take the group's new assignment, which is complete. What is not in it is given up."""
        self._held = frozenset(partitions)
        candidates = self._held if self._divided else self._held & {0}
        self._claims = {p: self._claims.get(p, _Claim()) for p in candidates}

    def reset(self) -> None:
        """Forget all: the state topic is read again, perhaps another one under the same name, with other offsets."""
        self._highest.clear()
        self._claimants.clear()
        self._claims.clear()
        self._held = frozenset()

    def unclaimed_partitions(self) -> tuple[int, ...]:
        """Return the partitions for which a leader row has to be appended now."""
        return tuple(sorted(p for p, c in self._claims.items() if c.state is LeadershipState.CLAIMING and c.term < 0))

    def claimed(self, partition: int, term: int) -> None:
        """Take the offset `term` of our leader row. Ignored when the partition was given up meanwhile."""
        claim = self._claims.get(partition)
        if claim is None:
            return
        claim.term = term
        self._update_state(partition)

    def read_claim(self, label: str, instance: str, offset: int) -> None:
        """Take a leader row that was read. One that is read twice, or out of order, changes nothing."""
        if offset <= self._highest.get(label, (-1, ""))[0]:
            return
        self._highest[label] = (offset, instance)
        self._claimants.setdefault(label, {})[instance] = offset
        for partition in self._claims:
            if leader_label(self._service, partition, divided=self._divided) == label:
                self._update_state(partition)

    def _update_state(self, partition: int) -> None:
        claim = self._claims[partition]
        highest, _ = self._highest.get(leader_label(self._service, partition, divided=self._divided), (-1, ""))
        if claim.term < 0:
            return
        if highest == claim.term:
            claim.state = LeadershipState.LEADING
        elif highest > claim.term:
            # Another instance claimed later while we hold the partition: the group decides, so claim again.
            self._claims[partition] = _Claim()

    def leadership_state(self, partition: int = 0) -> LeadershipState:
        claim = self._claims.get(partition)
        return LeadershipState.IDLE if claim is None else claim.state

    def leads(self, partition: int = 0) -> bool:
        return self.leadership_state(partition) is LeadershipState.LEADING

    def leading(self) -> frozenset[int]:
        """Return the partitions that this replica leads."""
        return frozenset(p for p in self._claims if self.leads(p))

    def term(self, partition: int = 0) -> int:
        """Return the term in which this replica leads the partition, 0 while it does not."""
        return self._claims[partition].term if self.leads(partition) else 0

    def leading_term(self, label: str) -> int:
        """Return the term in which this replica leads under a label (`leader_label`), 0 while it does not."""
        partitions = (p for p in self._claims if leader_label(self._service, p, divided=self._divided) == label)
        return max(map(self.term, partitions), default=0)

    def claimed_by_others(self, term: int, instance: str) -> bool:
        """Return whether another instance has claimed after `term`, as far as read, even if it was succeeded since."""
        claimants = self._claimants.get(leader_label(self._service, 0, divided=self._divided), {})
        return any(offset > term for claimant, offset in claimants.items() if claimant != instance)

    def leader(self, partition: int = 0) -> str:
        """Return the instance that claimed last, as far as read; "" when none has."""
        return self._highest.get(leader_label(self._service, partition, divided=self._divided), (-1, ""))[1]
