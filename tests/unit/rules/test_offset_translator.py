"""The offset translator uses runs first, and offset syncs for partitions without runs (decision 0021)."""

from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.offset_sync_store import OffsetSyncStore
from lockstep_rules.offsets.offset_translator import OffsetTranslator
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_state.codecs.mm2_codec import OffsetSync
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from tests.unit.rules.test_run_translator import GAP, TOPIC, copied, folded


def store(*syncs: tuple[int, int]) -> OffsetSyncStore:
    syncs_store = OffsetSyncStore(keep_only_newest=False)
    for at, (upstream, downstream) in enumerate(syncs):
        syncs_store.fold(at, OffsetSync("t", 0, UpstreamOffset(upstream), DownstreamOffset(downstream)))
    syncs_store.finish_reading()
    return syncs_store


def ask(exact: RunTranslator, syncs: OffsetSyncStore | None, upstream: int) -> TranslatedOffset:
    return OffsetTranslator(exact, syncs, "the offset syncs are away").translate("t", 0, UpstreamOffset(upstream))


OURS = folded(TOPIC, *copied(GAP).log)
NOBODY_S = folded(TOPIC)


def test_the_runs_count_alone_whatever_the_syncs_say() -> None:
    for syncs in (None, store(), store((10, 900)), store((0, 0))):
        assert ask(OURS, syncs, 15) == TranslatedOffset(DownstreamOffset(10))


def test_the_syncs_answer_where_there_is_no_row() -> None:
    assert ask(NOBODY_S, store((10, 9)), 10) == TranslatedOffset(DownstreamOffset(9), by_runs=False)
    assert ask(NOBODY_S, store((10, 9)), 11) == TranslatedOffset(DownstreamOffset(10), by_runs=False)
    assert ask(NOBODY_S, store((10, 9)), 15) == TranslatedOffset(DownstreamOffset(10), behind=4, by_runs=False)


def test_syncs_translate_up_to_the_first_run() -> None:
    """MirrorMaker 2 had copied that much when the data plane took over."""
    assert ask(OURS, store((8, 3)), 9).offset == 4
    assert ask(OURS, store((8, 700)), 9).offset == 5


def test_why_the_syncs_cannot_answer() -> None:
    assert ask(NOBODY_S, None, 5).reason == ReasonCode.SYNCS_UNREADABLE.to_reason(text="the offset syncs are away")
    assert ask(NOBODY_S, store(), 5).reason == ReasonCode.NO_OFFSET_SYNC.to_reason()
    assert ask(NOBODY_S, store((6, 6)), 5).reason == ReasonCode.OLDER_THAN_SYNCS.to_reason(offset=5)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60)), max_size=6, unique_by=itemgetter(1)))
def test_places_do_not_go_back_while_the_group_goes_forward(syncs: list[tuple[int, int]]) -> None:
    rising = list(zip(sorted(u for u, _ in syncs), sorted(d for _, d in syncs), strict=True))
    at_last = -1
    for upstream in range(40):
        translation = ask(OURS, store(*rising), upstream)
        if translation.offset is not None:
            assert translation.offset >= at_last
            at_last = translation.offset
