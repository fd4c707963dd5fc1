"""The origin of a batch, and whether a flow copies it (`kafka-wire.md` §4). No I/O.

A copied batch has a producer id that identifies a flow and an origin. It keeps that id in its header for ever. So topic
names may stay the same on all clusters: what came from a cluster is never copied back to it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from lockstep_data_plane.record_batch.layout import CONTROL, Batch
from lockstep_state.offsets import SEQUENCES
from lockstep_state.rows.state_rows import Origin, PartitionProgress, Row

OWN = -1
"""The mark for the flow's own producer id, which stands for records that originated on the flow's source."""


class FlowIds(NamedTuple):
    """The flow's producer id, and the id of its source cluster; "": not known."""

    producer_id: int
    source_cluster_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenanceRule:
    """The setting `lockstep.provenance` of a flow between two clusters, which are given by their cluster ids."""

    mode: Literal["local", "relay"]
    source: str
    target: str

    def copies(self, origin: str) -> bool:
        """Return whether the flow copies records that originated on the cluster with this id.

        Records that originated on the target are never copied.
        """
        if origin == self.target:
            return False
        return self.mode == "relay" or origin == self.source


def origins_by_producer(rows: Iterable[Row], cluster_id: str) -> Mapping[int, str]:
    """Return, by producer id, the id of the cluster on which its batches in logs of `cluster_id` originated.

    Rows about another cluster do not count: producer ids are unique only within one cluster.
    """
    return {
        row.producer_id: row.origin_cluster_id
        for row in rows
        if isinstance(row, Origin) and row.target_cluster_id == cluster_id
    }


def batches_with_records(batches: Iterable[Batch]) -> set[int]:
    """Return the producer ids of the batches that are not markers.

    A marker is never copied, so its owner does not matter. If it were learnt, a marker's id that no row names yet would
    count as the source's own for good.
    """
    return {batch.producer_id for batch in batches if not batch.attributes & CONTROL}


class Provenance(Protocol):
    """The known origins of one flow's batches."""

    async def look_up(self, producer_ids: Iterable[int]) -> None:
        """Find out the origins of these producer ids of the source. Raises RetriableError."""

    def copy_producer_id(self, batch: Batch) -> int | None:
        """Return the producer id of the batch's copy; `OWN`: the flow's own; None: the batch is not copied.

        The batch's own id must have been learnt, unless the batch is a marker.
        """

    async def claim(self, producer_id: int) -> None:
        """Write that this producer id stands for the flow's own records, unless that is known.

        The row is acknowledged when this returns.

        Raises:
            RetriableError: As in `look_up`.
        """

    async def own_producer_ids(self) -> frozenset[int]:
        """Return every producer id that may be ours in the target's log now, except the flow's own.

        Raises:
            RetriableError: As in `look_up`.
        """


class _NoProvenance:
    """The provenance of renamed topics: everything is copied, as the source's own."""

    async def look_up(self, producer_ids: Iterable[int]) -> None:
        return

    def copy_producer_id(self, batch: Batch) -> int | None:
        return OWN

    async def claim(self, producer_id: int) -> None:
        return

    async def own_producer_ids(self) -> frozenset[int]:
        return frozenset()


NO_PROVENANCE: Provenance = _NoProvenance()


def appended_since(row: PartitionProgress, sequence: int, others: Iterable[tuple[int, int]]) -> int:
    """Return how many records of ours were appended after `row` was written.

    A change of producer id waits for every answer. So the records under all ids together follow each other as in the
    source's log.

    Args:
        row: The written progress.
        sequence: The sequence at which our chain ends under the partition's own producer id.
        others: The ends under other producer ids, as `PartitionProgress.others`.
    """
    before = dict(row.others)
    return (sequence - row.sequence) % SEQUENCES + sum((s - before.get(p, -1)) % SEQUENCES for p, s in others)


def producers_of_copy(row: PartitionProgress, flow_producer_ids: Iterable[int]) -> frozenset[int]:
    """Return the producer ids under which the copy of a partition was appended.

    -1 is among them where its records carry none. `flow_producer_ids` are the producer ids of the flow.
    """
    named = {row.producer_id, *(producer_id for producer_id, _ in row.others), *flow_producer_ids} - {-1}
    return frozenset(named | {-1} if row.read_back else named)
