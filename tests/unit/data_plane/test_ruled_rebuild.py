"""Compiled code applies rules to the very bytes that decoded records make, and both do what a plain reading says."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.record_transform import RuleTransform, transformed_records
from lockstep_data_plane.record_batch import compiled_rebuild
from lockstep_data_plane.record_batch.classify import BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.compiled_rebuild import copy_records
from lockstep_data_plane.record_batch.gapped_batch import read_outgoing
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge, rebuild
from lockstep_rules.record_rules import (
    AddHeader,
    DropHeaders,
    DropRecord,
    HasHeader,
    IsTombstone,
    RecordRules,
    Rule,
)
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, ZSTD, batch, needs_compiled, record, records
from tests.support.batch_bytes import decoded as decoded_records
from tests.support.message_sets import Message, message_set, sets
from tests.unit.data_plane.test_compiled_rebuild import sized, skip_lists, times

names = st.sampled_from(("a", "ab", "b", "ä", "", "x" * 70))
patterns = names | st.sampled_from(("a*", "*", "ä*", "ab*"))
values = st.none() | st.binary(max_size=3) | st.just(bytes(200))
header_lists = st.lists(st.tuples(names, values), max_size=4).map(tuple)
condition = st.builds(HasHeader, patterns, st.booleans()) | st.builds(IsTombstone, st.booleans())
conditions = st.lists(condition, max_size=2).map(tuple)
rules = st.lists(
    st.builds(DropRecord, st.lists(condition, min_size=1, max_size=2).map(tuple))
    | st.builds(DropHeaders, patterns, conditions)
    | st.builds(AddHeader, names, st.binary(max_size=200), conditions),
    min_size=1,
    max_size=4,
).map(lambda each: RecordRules(tuple(each)))
codecs = st.sampled_from((0, GZIP, SNAPPY, LZ4, ZSTD))


@st.composite
def contents(draw: st.DrawFn) -> list[PlainRecord]:
    """Records with gaps, with and without values and headers."""
    offset, result = draw(st.integers(0, 100)), []
    for _ in range(draw(st.integers(1, 9))):
        result.append(PlainRecord(offset, draw(times), draw(sized), draw(sized), draw(header_lists)))
        offset += draw(st.sampled_from((1, 1, 1, 2, 63)))
    return result


def plainly(rules: Sequence[Rule], record: PlainRecord) -> PlainRecord | None:
    """What the rules say, read word by word: this shares no code with `RecordRules.apply`."""
    headers = list(record.headers)
    for rule in rules:
        holds = True
        for condition in rule.conditions:
            if isinstance(condition, IsTombstone):
                met = record.value is None
            else:
                assert isinstance(condition, HasHeader)
                stem = condition.name[:-1] if condition.name[-1:] == "*" else None
                met = any(
                    name[: len(stem)] == stem if stem is not None else name == condition.name for name, _ in headers
                )
            if met == condition.negated:
                holds = False
        if not holds:
            continue
        if isinstance(rule, DropRecord):
            return None
        if isinstance(rule, AddHeader):
            headers.append((rule.name, rule.value))
        else:
            stem = rule.name[:-1] if rule.name[-1:] == "*" else None
            headers = [h for h in headers if (h[0][: len(stem)] != stem if stem is not None else h[0] != rule.name)]
    return record._replace(headers=tuple(headers))


def decoded(
    source: Batch, position: int, limits: TargetLimits, skips: Sequence[tuple[int, int]]
) -> list[OutgoingBatch]:
    """The batch built anew from decoded records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_rebuild, "find_compiled", lambda: None)
        return rebuild(source, position, limits, skips)


def content_of(outgoing_batches: Sequence[OutgoingBatch]) -> list[PlainRecord]:
    return [
        r._replace(offset=offset, headers=tuple(r.headers))
        for outgoing in outgoing_batches
        for offset, r in zip(outgoing.offsets, decoded_records(outgoing.data), strict=True)
    ]


@needs_compiled
@given(contents(), rules, codecs, st.integers(0, 150), skip_lists)
def test_compiled_rules_make_the_bytes_of_decoded_records(
    content: list[PlainRecord], rules: RecordRules, codec: int, position: int, skip_lengths: list[tuple[int, int]]
) -> None:
    skips = [(first, first + length) for first, length in skip_lengths]
    limits = TargetLimits(rules=rules)
    source = batch(content, codec=codec)
    copied = copy_records(source, position, limits, skips)
    assert copied is not None
    assert copied == decoded(source, position, limits, skips)


@given(contents(), rules, codecs, st.sampled_from((0, LOG_APPEND_TIME)))
def test_rules_leave_what_they_say(content: list[PlainRecord], rules: RecordRules, codec: int, attributes: int) -> None:
    source = batch(content, codec=codec, attributes=attributes, max_timestamp=5 if attributes else None)
    wanted = [left for r in content if (left := plainly(rules.rules, r)) is not None]
    if attributes:
        wanted = [r._replace(timestamp=5) for r in wanted]
    outgoing_batches = rebuild(source, 0, TargetLimits(rules=rules))
    assert content_of(outgoing_batches) == wanted
    if outgoing_batches:
        assert outgoing_batches[-1].covers == content[-1].offset


@needs_compiled
@given(st.lists(st.tuples(sized, sized), min_size=1, max_size=6), rules, st.sampled_from((0, 1)), codecs)
def test_old_messages_have_no_headers_but_those_that_rules_add(
    content: list[tuple[bytes | None, bytes | None]], rules: RecordRules, magic: int, codec: int
) -> None:
    if codec == ZSTD:
        codec = GZIP  # the old formats know no zstd
    messages = [Message(7 + i, key, value, 1000 + i) for i, (key, value) in enumerate(content)]
    limits = TargetLimits(rules=rules)
    for source in sets(message_set(magic, messages, codec)):
        assert copy_records(source, 0, limits) == decoded(source, 0, limits, ())


def test_every_batch_of_a_topic_with_rules_is_rebuilt() -> None:
    limits = TargetLimits(rules=RecordRules((DropHeaders("a"),)))
    action, reason = classify(batch(records(5, 3)), 0, limits, aborted=False)
    assert (action, reason) == (BatchAction.REBUILD, "records are filtered, or their headers changed")


@needs_compiled
def test_a_program_that_is_none_is_refused() -> None:
    compiled = find_compiled()
    assert compiled is not None
    for program in (b"\x09", b"\x01", b"\x02\x00\xff\xff\xff\x7f", b"\x01\x01\x07\x00"):
        with pytest.raises(ValueError, match="the rules cannot be read"):
            compiled.renumber(b"", 0, 0, 0, 0, None, 0, (), program)


def test_headers_that_make_a_batch_too_large_split_it() -> None:
    limits = TargetLimits(max_bytes=1_000, rules=RecordRules((AddHeader("big", bytes(300)),)))
    outgoing_batches = rebuild(batch(records(0, 6)), 0, limits)
    assert len(outgoing_batches) > 1
    assert all(len(outgoing.data) <= 1_000 for outgoing in outgoing_batches)
    assert [r.offset for r in content_of(outgoing_batches)] == list(range(6))


def test_a_record_that_an_added_header_makes_too_large_is_refused() -> None:
    limits = TargetLimits(max_bytes=200, rules=RecordRules((AddHeader("big", bytes(range(256)) * 2),)))
    with pytest.raises(RecordTooLarge, match="the record at offset 3"):
        rebuild(batch(records(3, 1)), 0, limits)


def test_headers_that_would_take_all_memory_refuse_the_batch() -> None:
    content = [record(offset, None, key=None) for offset in range(20_000)]
    limits = TargetLimits(max_bytes=20_000, rules=RecordRules((AddHeader("big", bytes(4_000)),)))
    with pytest.raises(CorruptRecordError, match=r"lockstep.headers adds, its 20000 records take more than"):
        rebuild(batch(content), 0, limits)


async def test_rules_as_a_transform_leave_what_the_rebuild_leaves() -> None:
    rules = RecordRules((DropRecord((IsTombstone(),)), AddHeader("a", b"1")))
    batches = [
        batch([record(5), record(6, None), record(9)]),
        batch([record(10, None)]),
        batch([record(11), record(12)], codec=LZ4),
    ]
    transform = RuleTransform(rules)
    assert transform.version == rules.version
    cases: list[tuple[int, Sequence[tuple[int, int]]]] = [(0, ()), (6, ()), (6, [(11, 11)])]
    for start, skips in cases:
        for each in batches:
            left, failed = await transformed_records(transform, each, start, ("t", 0), skips)
            copied = rebuild(each, start, TargetLimits(rules=rules), skips)
            assert failed is None
            assert left == [r for outgoing in copied for r in read_outgoing(outgoing)]
    assert [(r.offset, r.headers) for r in left] == [(12, (("a", b"1"),))]
