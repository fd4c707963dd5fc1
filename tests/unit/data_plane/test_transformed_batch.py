"""Verification compares what a transform leaves of the source, and counts what it cannot evaluate as passed over."""

from collections.abc import Sequence

from lockstep_data_plane.core.record_transform import RecordFailure, RuleTransform, TransformedRecords
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.rebuild import rebuild
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_data_plane.verify.transformed_batch import transform_batch
from lockstep_rules.offsets.offset_runs import Run
from lockstep_rules.record_rules import AddHeader, DropRecord, IsTombstone, RecordRules
from lockstep_state.offsets import TopicPartition
from tests.support.batch_bytes import record
from tests.unit.data_plane.verify_scene import OURS, as_copy, in_batches

RULES = RecordRules((DropRecord((IsTombstone(),)), AddHeader("via", b"A")))
SOURCE = [record(offset, None if offset % 3 == 0 else b"v%d" % offset) for offset in range(30)]
KEPT = [r._replace(headers=(("via", b"A"),)) for r in SOURCE if r.value is not None]


async def verifier_of(target: Sequence[Batch], runs: Sequence[Run], end: tuple[int, int]) -> PartitionVerifier:
    """Compare `SOURCE`, as the rules leave it, with this target."""
    verifier = PartitionVerifier((0, 0), end, Depth.BYTES, TargetRules(), OffsetMap(runs, 29), lambda p: p == OURS)
    batches = [await transform_batch(RuleTransform(RULES), each, ("t", 0)) for each in in_batches(SOURCE, 4)]
    verifier.add_source(batches)
    verifier.add_target(target, AbortedTransactions())
    verifier.compare()
    verifier.finish()
    return verifier


def runs_of_kept() -> list[Run]:
    return [Run(r.offset, index, 1) for index, r in enumerate(KEPT)]


async def test_a_copy_that_is_what_the_rules_leave_is_equal() -> None:
    copy = [r._replace(offset=index) for index, r in enumerate(KEPT)]
    verifier = await verifier_of(as_copy(copy, 7), runs_of_kept(), (30, len(KEPT)))
    assert (verifier.records, verifier.differences, verifier.not_compared) == (len(KEPT), {}, {})
    assert verifier.position == (30, len(KEPT))


async def test_a_copy_without_the_header_differs() -> None:
    copy = [r._replace(offset=index) for index, r in enumerate(KEPT)]
    copy[5] = copy[5]._replace(headers=())
    verifier = await verifier_of(as_copy(copy, 7), runs_of_kept(), (30, len(KEPT)))
    assert verifier.differences == {"headers": 1}
    (difference,) = verifier.listed
    assert (difference.source_offset, difference.target_offset) == (KEPT[5].offset, 5)


async def test_a_record_that_should_have_been_dropped_is_too_much() -> None:
    copy = [r._replace(offset=index) for index, r in enumerate([*KEPT, SOURCE[0]])]
    verifier = await verifier_of(as_copy(copy, 7), runs_of_kept(), (30, len(copy)))
    assert verifier.differences == {"extra": 1}


class FailsAt:
    """A transform that cannot evaluate one record."""

    version = "fails"

    def __init__(self, offset: int) -> None:
        self.offset = offset

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        (batch,) = batches
        if not start <= self.offset <= batch.last_offset:
            (left,) = rebuild(batch, start, TargetLimits())
            return TransformedRecords(left, batch.last_offset)
        failure = (RecordFailure(self.offset, "MALFORMED"),)
        before = rebuild(batch, start, TargetLimits(), [(self.offset, batch.last_offset)])
        return TransformedRecords(before[0] if before else None, self.offset, is_whole=False, failures=failure)


async def test_a_record_that_fails_is_passed_over() -> None:
    (batch,) = in_batches(SOURCE[:6], 6)
    left = await transform_batch(FailsAt(2), batch, ("t", 0))
    assert ([r.offset for r in left.records], left.failed, left.last_offset) == ([0, 1, 3, 4, 5], (2,), 5)
