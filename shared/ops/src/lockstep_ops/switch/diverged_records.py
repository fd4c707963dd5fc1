"""Finds diverged records, which only one cluster has. Copies by the opposite flow are not among them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep_ops.formatting import name_partitions
from lockstep_ops.switch.followed_flow import FollowedFlow
from lockstep_ops.switch.switch_positions import (
    NAMED,
    diverged_records,
    records_by_partition,
    unwritten_tails,
    with_copies_outside_runs,
)
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Row, SlotStatus

WRITTEN_DOWN_MS = 2_000
"""A slot writes down at least every second what it has copied."""

WRITTEN_DOWN_S = WRITTEN_DOWN_MS / 1000

VOUCHED_WITHIN_S = 45.0
"""The seconds within which a slot vouches for its rows.

A slot writes its status every few seconds. One that was killed is started again in this time, and finds what it has
copied.
"""


@dataclass(frozen=True, slots=True)
class DivergedRecords:
    """Records by partition that one cluster has and the other one lacks.

    `at_most` are the partitions with perhaps fewer such records, because copies may be counted with them.
    """

    counts: Mapping[TopicPartition, int]
    at_most: frozenset[TopicPartition] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def total(self) -> int:
        """Return how many these are, or are at most."""
        return sum(self.counts.values())

    @property
    def text(self) -> str:
        """Return the number and the partitions as they are shown."""
        return f"{'at most ' if self.at_most else ''}{records_by_partition(self.counts)}"


class CopiesUnknown(Exception):
    """Slots have not written down yet what they copied to some partitions.

    The message is the sentence of `reason`. `counted` has the diverged records of the other partitions.
    """

    def __init__(self, reason: Reason, counted: DivergedRecords) -> None:
        super().__init__(format_sentence(reason))
        self.reason, self.counted = reason, counted


async def find_diverged(
    ends: Mapping[TopicPartition, int],
    rows: Mapping[str, Row],
    opposite: FollowedFlow,
    starts: Mapping[TopicPartition, int] | None = None,
) -> DivergedRecords:
    """Return how many records before these ends a cluster has that the other one lacks.

    Copies from the other one do not count.

    Args:
        ends: The ends of the cluster's logs, read before this.
        rows: The rows of the flow from the cluster.
        opposite: The followed rows of the flow to it. They may be older than the ends. A slot that was killed has
            appended records that no row has until the next slot has found them. So its slots are heard first.
        starts: Where the logs of the cluster begin. None: with their first record.

    Raises:
        CopiesUnknown: The slots do not answer in time.
    """
    witness = SlotWitness(_statuses(opposite.rows))
    counts = diverged_records(ends, rows, opposite.rows, starts)
    if not counts:
        return DivergedRecords(counts)

    def unknown() -> list[TopicPartition]:
        witness.hear(_statuses(opposite.rows))
        tails = unwritten_tails(counts, ends, opposite.rows)
        return [tp for tp, (slot, generation) in tails.items() if not witness.vouches(slot, generation)]

    await opposite.wait_until(lambda: not unknown(), VOUCHED_WITHIN_S)
    unvouched = unknown()
    await asyncio.sleep(WRITTEN_DOWN_S)
    await opposite.catch_up_now()
    diverged = diverged_records(ends, rows, opposite.rows, starts)
    unsure = sorted(diverged.keys() & set(unvouched))
    vouched = {tp: count for tp, count in diverged.items() if tp not in unvouched}
    records = DivergedRecords(vouched, with_copies_outside_runs(vouched, opposite.rows))
    if unsure:
        raise CopiesUnknown(_not_known(opposite.settings.flow, sum(diverged[tp] for tp in unsure), unsure), records)
    return records


def _statuses(rows: Mapping[str, Row]) -> list[SlotStatus]:
    return [row for row in rows.values() if isinstance(row, SlotStatus)]


def _not_known(flow: Flow, count: int, partitions: list[TopicPartition]) -> Reason:
    details = {"source": flow.source, "target": flow.target, "flow": str(flow)}
    return RefusalCode.DIVERGENCE_UNKNOWN.to_reason(
        count=count, partitions=name_partitions(partitions, NAMED), **details
    )


class SlotWitness:
    """A witness of what slots say after a moment.

    A slot vouches for its rows if it has said twice that it resumes nothing. Both times it is the same run, of one
    assignment, some time apart. It does not vouch for a partition of which it still counts records.
    """

    def __init__(self, statuses: Iterable[SlotStatus]) -> None:
        """Take the statuses that slots wrote before that moment. They do not count."""
        self._before = {row.slot: (row.run, row.at_ms) for row in statuses}
        self._first: dict[int, SlotStatus] = {}
        self._vouching: dict[int, int] = {}
        """Slots with the assignment that they had taken up."""

    def hear(self, statuses: Iterable[SlotStatus]) -> None:
        """Take the newest statuses of slots."""
        for row in statuses:
            if self._before.get(row.slot) == (row.run, row.at_ms):
                continue
            earlier = self._first.get(row.slot)
            if row.phase != "started" or row.resuming != 0:
                self._first.pop(row.slot, None)
            elif earlier is None or (earlier.run, earlier.generation) != (row.run, row.generation):
                self._first[row.slot] = row
            elif row.at_ms - earlier.at_ms >= WRITTEN_DOWN_MS:
                self._vouching[row.slot] = row.generation

    def vouches(self, slot: int, generation: int) -> bool:
        """Return whether the rows of the slot have everything that was appended to the partitions of this assignment.

        They have what was appended until that moment. A slot that has not taken the assignment up yet knows nothing
        of a partition that is new to it.
        """
        return self._vouching.get(slot, -1) >= generation
