"""Offset translation follows MirrorMaker 2's store (`mm2-behaviour.md` §3.2, conformance nos. 153 to 160)."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep_rules.offsets.offset_sync_store import SLOTS, TOO_OLD, History, OffsetSyncStore, translate, with_sync
from lockstep_state.codecs.mm2_codec import OffsetSync
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset

TOPIC = "orders"
GOLDEN_LAG = 10


def sync(upstream: int, downstream: int | None = None, topic: str = TOPIC, partition: int = 0) -> OffsetSync:
    return OffsetSync(
        topic, partition, UpstreamOffset(upstream), DownstreamOffset(upstream if downstream is None else downstream)
    )


class Feed:
    """A store and the syncs topic it folds, one offset after the other."""

    def __init__(self, *, keep_only_newest: bool = False, started: bool = True) -> None:
        self.store = OffsetSyncStore(keep_only_newest=keep_only_newest)
        self.at = 0
        if started:
            self.store.finish_reading()

    def receive(self, *syncs: OffsetSync) -> "Feed":
        for offset_sync in syncs:
            self.store.fold(self.at, offset_sync)
            self.at += 1
        return self

    def at_offset(self, upstream: int) -> int | None:
        return self.store.translate_downstream(TOPIC, 0, UpstreamOffset(upstream))

    @property
    def history(self) -> History:
        return self.store.histories[TOPIC, 0]

    @property
    def distinct(self) -> tuple[int, ...]:
        return tuple(offset_sync.upstream for offset_sync in distinct(self.history))


def distinct(history: History) -> list[OffsetSync]:
    different = [history[0]]
    for offset_sync in history[1:]:
        if offset_sync is not different[-1]:
            different.append(offset_sync)
    return different


def assert_invariants(history: History) -> None:
    """B and C of the store's docstring, by unbounded arithmetic: they hold wherever 64 bits do not wrap."""
    for j in range(SLOTS):
        for i in range(j):
            newer, older = history[i], history[j]
            if newer.upstream == older.upstream:
                continue  # one sync, or one repeated
            assert newer.upstream >= older.upstream + 2 ** max(i - 2, 0), f"C broken at {i} < {j}"
            upper = older.upstream + 2**j - 2**i
            if upper < 2**63:
                assert newer.upstream <= upper, f"B broken at {i} < {j}"


class TestTranslation:
    @pytest.mark.parametrize(
        ("syncs", "translated"),
        [
            pytest.param([sync(100, 200)], {150: 201}, id="past a sync"),
            pytest.param([sync(100, 200), sync(150, 251)], {150: 251, 5: TOO_OLD}, id="at a sync, below every sync"),
            pytest.param([sync(150, 251), sync(200, 10)], {200: 10}, id="target starts over"),
            pytest.param(
                [sync(100, 200), sync(200, 300), sync(20, 20)], {20: 20, 150: 21, 19: TOO_OLD}, id="source starts over"
            ),
            pytest.param(
                [sync(100, 200), sync(200, 300), sync(200, 310)], {150: 201, 200: 310}, id="same upstream offset again"
            ),
            pytest.param([], {100: None}, id="mm2-155, without a sync"),
        ],
    )
    def test_mm2_153_155_group_offset_is_translated_by_the_last_sync_below_it(
        self, syncs: list[OffsetSync], translated: dict[int, int | None]
    ) -> None:
        feed = Feed().receive(*syncs)
        assert {upstream: feed.at_offset(upstream) for upstream in translated} == translated

    def test_mm2_154_store_translates_nothing_before_it_is_read_to_the_end(self) -> None:
        feed = Feed(started=False).receive(sync(100, 200))
        assert feed.at_offset(100) is None
        feed.store.finish_reading()
        assert feed.at_offset(100) == 200

    def test_partitions_and_topics_do_not_mix(self) -> None:
        feed = Feed().receive(sync(100, 200), sync(100, 300, partition=1), sync(100, 400, topic="payments"))
        assert feed.at_offset(100) == 200
        assert feed.store.translate_downstream(TOPIC, 1, UpstreamOffset(100)) == 300
        assert feed.store.translate_downstream("payments", 0, UpstreamOffset(100)) == 400
        assert feed.store.translate_downstream("payments", 1, UpstreamOffset(100)) is None


class TestGoldenVectors:
    AFTER_START_WITHOUT_CHECKPOINTS: tuple[int, ...] = (
        *(10000, 9990, 9970, 9940, 9880, 9640),
        *(9160, 8680, 6760, 4840, 1000),
    )
    LOADED: tuple[int, ...] = (1000, 990, 960, 900, 840, 720, 480, 0)
    AFTER_START: tuple[int, ...] = (10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0)

    def loaded(self, *, keep_only_newest: bool) -> Feed:
        feed = Feed(keep_only_newest=keep_only_newest, started=False)
        for upstream in range(0, 1001, GOLDEN_LAG):
            feed.receive(sync(upstream))
            assert_invariants(feed.history)
        feed.store.finish_reading()
        return feed

    def run_on(self, feed: Feed, start: int) -> None:
        for upstream in range(start, 10001, GOLDEN_LAG):
            feed.receive(sync(upstream))
            assert_invariants(feed.history)

    def test_mm2_156_without_checkpoints_only_the_newest_sync_is_kept(self) -> None:
        feed = self.loaded(keep_only_newest=True)
        assert feed.distinct == (1000,)
        assert feed.at_offset(999) == TOO_OLD
        self.run_on(feed, 1010)
        assert feed.distinct == self.AFTER_START_WITHOUT_CHECKPOINTS

    def test_mm2_157_history_with_checkpoints_is_kept_at_the_start(self) -> None:
        feed = self.loaded(keep_only_newest=False)
        assert feed.distinct == self.LOADED
        self.run_on(feed, 1000)
        assert feed.distinct == self.AFTER_START

    @pytest.mark.parametrize("keep_only_newest", [True, False])
    def test_mm2_156_157_an_upstream_rewind_forgets_all_of_it(self, *, keep_only_newest: bool) -> None:
        feed = self.loaded(keep_only_newest=keep_only_newest)
        self.run_on(feed, 1010)
        feed.receive(sync(1500, 11000))
        assert feed.distinct == (1500,)
        assert [feed.at_offset(upstream) for upstream in (1499, 1500, 2000)] == [-1, 11000, 11001]


class TestExpiry:
    """How many syncs one more sync may push out, for ways in which syncs come in."""

    def fed(self, offsets: Iterable[int], *, expires_at_most: int) -> None:
        history: History | None = None
        first = count = 0
        for upstream in offsets:
            newest = sync(upstream)
            if history is None:
                history, first = (newest,) * SLOTS, upstream
            else:
                history = with_sync(history, newest)
            assert history[0].upstream == upstream, "A: the newest sync is kept"
            assert history[-1].upstream == first, "D: the oldest usable sync is kept"
            now = len(distinct(history))
            assert count + 1 - now <= expires_at_most
            count = now
        assert history is not None
        assert_invariants(history)

    @pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 13, 21, 34, 55])
    @pytest.mark.parametrize("first", [0, 1, 7, 29])
    def test_mm2_158_consistently_spaced_syncs_expire_at_most_one_each(self, bits: int, first: int) -> None:
        step = 2**bits - 1
        self.fed(range(first, first + 100 * step, step), expires_at_most=1)

    @pytest.mark.parametrize("bits", [1, 3, 8, 20, 40])
    def test_mm2_159_random_syncs_expire_at_most_their_spread_in_bits_plus_two(self, bits: int) -> None:
        dice = random.Random(bits)
        self.fed(running_sum(dice.randrange(2**bits) for _ in range(1000)), expires_at_most=bits + 2)

    def test_mm2_160_syncs_of_which_half_are_lost_expire_at_most_two_each(self) -> None:
        dice = random.Random(0)
        self.fed(running_sum(dice.choice((100, 200)) for _ in range(1000)), expires_at_most=2)


def running_sum(steps: Iterable[int]) -> Iterable[int]:
    total = 0
    for step in steps:
        total += step
        yield total


class TestPosition:
    """The fold skips by position in the log, never by content."""

    def test_a_sync_read_twice_changes_nothing(self) -> None:
        feed = Feed().receive(*(sync(upstream) for upstream in range(0, 500, 10)))
        before = feed.history
        for at in range(50):
            feed.store.fold(at, sync(at * 10))
        assert feed.history is before
        assert feed.store.position == 49

    def test_gaps_in_the_positions_are_the_compaction_and_nothing_else(self) -> None:
        store = OffsetSyncStore(keep_only_newest=False)
        store.fold(5, sync(10))
        store.fold(9, sync(20))
        store.finish_reading()
        assert store.translate_downstream(TOPIC, 0, UpstreamOffset(15)) == 11

    def test_an_earlier_history_does_not_change_under_its_reader(self) -> None:
        feed = Feed().receive(sync(0), sync(10))
        held = feed.history
        copy = tuple(held)
        feed.receive(sync(20), sync(30))
        assert held == copy


OFFSETS = st.lists(st.integers(0, 2**62), min_size=1, max_size=80, unique=True).map(sorted)
STEPS = st.lists(st.integers(0, 300), min_size=1, max_size=200)


@given(OFFSETS)
def test_invariants_hold_for_any_rising_offsets(offsets: list[int]) -> None:
    feed = Feed()
    for upstream in offsets:
        feed.receive(sync(upstream))
        assert feed.history[0].upstream == upstream
        assert feed.history[-1].upstream == offsets[0]
    assert_invariants(feed.history)


@given(STEPS, st.data())
def test_translation_never_leads_beyond_the_truth(steps: list[int], data: st.DataObject) -> None:
    """Records dropped on the way make downstream fall behind; a checkpoint may cost records read twice, never records
    skipped.
    """
    upstream = downstream = 0
    truth: dict[int, int] = {}
    feed = Feed()
    for step in steps:
        upstream += step + 1
        downstream += data.draw(st.integers(1, step + 1))
        truth[upstream] = downstream
        feed.receive(sync(upstream, downstream))
    for at, true in truth.items():
        translated = feed.at_offset(at)
        assert translated == TOO_OLD or (translated is not None and translated <= true)
    assert feed.at_offset(upstream) == downstream


@given(STEPS)
def test_translation_rises_with_the_upstream_offset(steps: list[int]) -> None:
    feed = Feed().receive(*(sync(upstream, 2 * upstream) for upstream in running_sum(steps)))
    answers = [translate(feed.history, UpstreamOffset(at)) for at in range(0, sum(steps) + 10, 7)]
    assert answers == sorted(answers)


@given(STEPS)
@example([0, 0, 0, 1, 8, 8, 8, 0, 8])  # 30 for a lag of 10: twice the lag and a gap would be too little
def test_a_lagging_group_is_never_re_read_more_than_four_times_its_lag(steps: list[int]) -> None:
    """What invariants B and C are for: neighbours i and i + 1 lie at most 2^i apart (B), and the newest sync lies more
    than 2^(i-2) before them (C); a gap between syncs comes on top.
    """
    offsets = list(running_sum(step + 1 for step in steps))
    feed = Feed().receive(*(sync(upstream) for upstream in offsets))
    newest = offsets[-1]
    widest = max(step + 1 for step in steps)
    for at in offsets:
        translated = feed.at_offset(at)
        assert translated is not None
        assert at - translated <= 4 * (newest - at) + widest
