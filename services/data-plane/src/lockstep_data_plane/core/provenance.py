"""Where a batch originated, and what becomes of it for that (`kafka-wire.md` §4). No I/O.

A copied batch has a producer id that identifies a flow and an origin, and keeps it in its header for ever. So names may
stay the same on all clusters: what came from a cluster is never copied back to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from lockstep_data_plane.record_batch.layout import CONTROL, Batch
from lockstep_state.offsets import SEQUENCES
from lockstep_state.rows.state_rows import Origin, PartitionProgress, Row

OWN = -1
"""In place of a producer id: the flow's own, which stands for records that originated on its source."""


class FlowIds(NamedTuple):
    """The flow's producer id, and the id of the cluster that it stands for; "": not known."""

    producer_id: int
    source_cluster_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenanceRule:
    """`lockstep.provenance` of a flow, between clusters given by their ids."""

    mode: Literal["local", "relay"]
    source: str
    target: str

    def copies(self, origin: str) -> bool:
        """Whether the flow copies what originated on the cluster with this id. What originated on the target never."""
        if origin == self.target:
            return False
        return self.mode == "relay" or origin == self.source


def origins_by_producer(rows: Iterable[Row], cluster_id: str) -> Mapping[int, str]:
    """By producer id, the cluster (by id) on which its batches in logs of `cluster_id` originated. Rows about another
    cluster do not count: producer ids are unique within one cluster's life only."""
    return {
        row.producer_id: row.origin_cluster_id
        for row in rows
        if isinstance(row, Origin) and row.target_cluster_id == cluster_id
    }


def batches_with_records(batches: Iterable[Batch]) -> set[int]:
    """The producer ids of those that are no markers. A marker is never copied, so its owner does not matter. A marker
    whose id is not written down yet would be taken for the source's for good."""
    return {batch.producer_id for batch in batches if not batch.attributes & CONTROL}


class Provenance(Protocol):
    """What is known of the origins of one flow's batches."""

    async def learn(self, producer_ids: Iterable[int]) -> None:
        """Find out about these ids of the source. Raises RetriableError."""

    def copy_producer_id(self, batch: Batch) -> int | None:
        """The producer id of the batch's copy (`OWN`: the flow's own); None: it is not copied. The batch's own id must
        have been learnt, unless it is a marker."""

    async def own(self, producer_id: int) -> None:
        """Write down that this producer id stands for the flow's own records, unless that is known. Acknowledged when
        it returns. Raises as `learn`."""

    async def ours(self) -> frozenset[int]:
        """Every producer id that may be ours in the target's log now, but for the flow's own. Raises as `learn`."""


class _NoProvenance:
    """Topics are renamed: everything is copied, as the source's own."""

    async def learn(self, producer_ids: Iterable[int]) -> None:
        return

    def copy_producer_id(self, batch: Batch) -> int | None:
        return OWN

    async def own(self, producer_id: int) -> None:
        return

    async def ours(self) -> frozenset[int]:
        return frozenset()


NO_PROVENANCE: Provenance = _NoProvenance()


def appended_since(row: PartitionProgress, sequence: int, others: Iterable[tuple[int, int]]) -> int:
    """Records of ours that were appended after `row` was written, when our chain ends so: under our own id, and under
    others. A change of id waits for every answer, so together they follow each other as in the source's log."""
    before = dict(row.others)
    return (sequence - row.sequence) % SEQUENCES + sum((s - before.get(p, -1)) % SEQUENCES for p, s in others)


def producers_of_copy(row: PartitionProgress, known: Iterable[int]) -> frozenset[int]:
    """Return the producer ids under which the copy of a partition was appended; -1 where its records carry none.
    `known`: those of the flow."""
    named = {row.producer_id, *(producer_id for producer_id, _ in row.others), *known} - {-1}
    return frozenset(named | {-1} if row.read_back else named)
