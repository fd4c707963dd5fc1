"""A partition and its copy as batches, for the tests of verification."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.verify.agreement_search import Agreement, AgreementSearch
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_rules.offsets.offset_runs import Run
from tests.support.batch_bytes import batch

OURS, FOREIGN = 4711, 13


def in_batches(records: Sequence[PlainRecord], size: int, **more: object) -> list[Batch]:
    """So many records in each batch; offsets may have gaps."""
    return [batch(records[at : at + size], **more) for at in range(0, len(records), size)]


def copied(records: Iterable[PlainRecord], first: int = 0) -> list[PlainRecord]:
    """The same records at the target's offsets, without a gap."""
    return [record._replace(offset=first + index) for index, record in enumerate(records)]


def as_copy(records: Sequence[PlainRecord], size: int, producer: int = OURS, **more: object) -> list[Batch]:
    """Batches of the target that our producer has appended."""
    return [
        batch(records[at : at + size], producer=(producer, 0, at), leader_epoch=9, **more)
        for at in range(0, len(records), size)
    ]


def runs_between(source: Sequence[PlainRecord], target: Sequence[PlainRecord]) -> list[Run]:
    """The offset runs of a copy that has each record of the source."""
    runs: list[Run] = []
    for original, copy in zip(source, target, strict=True):
        last = runs[-1] if runs else None
        if last is not None and (last.upstream_end, last.downstream_end) == (original.offset, copy.offset):
            runs[-1] = last._replace(length=last.length + 1)
        else:
            runs.append(Run(original.offset, copy.offset, 1))
    return runs


def verified(
    source: Sequence[Batch],
    target: Sequence[Batch],
    *,
    depth: Depth = Depth.BYTES,
    rules: TargetRules | None = None,
    runs: Sequence[Run] = (),
    decided: int = -1,
    start: tuple[int, int] | None = None,
    end: tuple[int, int] | None = None,
    at_once: int = 1000,
    aborted: Sequence[tuple[int, int]] = (),
    aborted_on_target: Sequence[tuple[int, int]] = (),
    is_copied: Callable[[Batch], bool] = lambda _: True,
) -> PartitionVerifier:
    """Both logs compared from `start` to `end`, by default all of them, so many batches of each at a time. `aborted`:
    as a fetch names them."""
    begin = start or (source[0].base_offset if source else 0, target[0].base_offset if target else 0)
    if end is None:
        end = source[-1].last_offset + 1 if source else begin[0], target[-1].last_offset + 1 if target else begin[1]
    verifier = PartitionVerifier(
        *(begin, end, depth, rules or TargetRules(), OffsetMap(runs, decided)),
        lambda producer: producer == OURS,
        is_copied=is_copied,
    )
    while True:
        aborted_there, aborted_here = AbortedTransactions(aborted), AbortedTransactions(aborted_on_target)
        for at in range(0, max(len(source), len(target)), at_once):
            if not verifier.is_lost:
                verifier.add_source(verifier.source_batches(source[at : at + at_once], aborted_there))
                verifier.add_target(target[at : at + at_once], aborted_here)
                verifier.compare()
        if not verifier.is_lost:
            verifier.finish()
        if not verifier.is_lost:
            return verifier
        verifier.go_on(next_agreement(verifier, source, target, end))


def next_agreement(
    verifier: PartitionVerifier, source: Sequence[Batch], target: Sequence[Batch], end: tuple[int, int]
) -> Agreement:
    """Where both logs agree again, read batch by batch in turn."""
    search, aborted = AgreementSearch(most=SEARCHED), AbortedTransactions()
    for copy, original in zip_longest(target, source):
        agreement = verifier.search_target(search, [copy], aborted) if copy else None
        agreement = agreement or (
            verifier.search_source(search, verifier.searched_batches([original], aborted)) if original else None
        )
        if agreement is not None:
            return agreement
    return search.find_at_end() or Agreement(*end)


SEARCHED = 500
"""Few, so that places are thinned in tests too."""


def differences_in(verifier: PartitionVerifier) -> list[tuple[str, int, int]]:
    """The differences, as (kind, source offset, target offset)."""
    return [(difference.kind, difference.source_offset, difference.target_offset) for difference in verifier.listed]
