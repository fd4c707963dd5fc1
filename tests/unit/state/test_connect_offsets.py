"""MM2's rules for altered source offsets. Numbers and values are those of MM2's own tests (`mm2-behaviour.md` §7)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.codecs.connect_offsets import (
    OffsetChange,
    OffsetFold,
    RefusedOffsets,
    encode_change,
    listing,
    parse_changes,
)
from lockstep_state.codecs.mm2_codec import MalformedRecord, encode_source_progress
from lockstep_state.commands.command_vocabulary import Connector

SOURCE, CHECKPOINT, HEARTBEAT = Connector.SOURCE, Connector.CHECKPOINT, Connector.HEARTBEAT
PARTITION: dict[Connector, dict[str, Any]] = {
    SOURCE: {"cluster": "primary", "topic": "t1", "partition": 2},
    CHECKPOINT: {"group": "g", "topic": "primary.t1", "partition": 2},
    HEARTBEAT: {"sourceClusterAlias": "primary", "targetClusterAlias": "backup"},
}
NEITHER: tuple[Any, ...] = ("nan", "10", "-420", 3.14, 0.0, True, False, [0], {}, None, 2**63, -(2**63) - 1)
"""No integers to Java."""


def asked(connector: Connector, *entries: tuple[Any, Any]) -> tuple[OffsetChange, ...]:
    return parse_changes(connector, {"offsets": [{"partition": p, "offset": o} for p, o in entries]})


def refused(connector: Connector, partition: Any, offset: Any = 0, *, reason: str = "") -> None:
    with pytest.raises(RefusedOffsets, match=reason):
        asked(connector, (partition, {"offset": offset}))


def without(connector: Connector, field: str) -> dict[str, Any]:
    return {name: value for name, value in PARTITION[connector].items() if name != field}


OTHER_FIELD = {SOURCE: "partition", CHECKPOINT: "group", HEARTBEAT: "sourceClusterAlias"}
RUBBISH: tuple[Any, ...] = (None, {}, {"unused": "x"}, {"partition": "a string"})
every_connector = pytest.mark.parametrize("connector", Connector)


@every_connector
def test_mm2_041_073_131_a_partition_has_the_connectors_keys(connector: Connector) -> None:
    refused(connector, {"unused_partition_key": "unused"}, reason="lacks the field")
    refused(connector, {}, reason="lacks the field")
    refused(connector, None, reason="may not be null")
    refused(
        connector, {**PARTITION[connector], "colour": "blue"}, reason=f"'colour', which a {connector.value} does not"
    )


@pytest.mark.parametrize(("connector", "field"), [(c, field) for c in Connector for field in PARTITION[c]])
def test_mm2_042_074_132_no_key_may_be_missing(connector: Connector, field: str) -> None:
    refused(connector, without(connector, field), reason=f"lacks the field '{field}'")


@pytest.mark.parametrize("connector", [SOURCE, CHECKPOINT])
@pytest.mark.parametrize("number", [*NEITHER, -1, -(2**31), 2**31, 2**40])
def test_mm2_043_133_the_partition_is_a_java_integer_from_0(connector: Connector, number: Any) -> None:
    refused(connector, {**PARTITION[connector], "partition": number}, reason="as 'partition', which m")


@pytest.mark.parametrize(
    ("connector", "field"), [(c, field) for c in Connector for field in PARTITION[c] if field != "partition"]
)
@pytest.mark.parametrize("name", [1, None, True, ["t"]])
def test_mm2_074_133_aliases_topics_and_groups_are_strings(connector: Connector, field: str, name: Any) -> None:
    refused(connector, {**PARTITION[connector], field: name}, reason=f"as '{field}', which must be a string")


@every_connector
def test_mm2_044_075_134_wrong_partition_refuses_all_entries(connector: Connector) -> None:
    good = (PARTITION[connector], {"offset": 0})
    assert [change.offset for change in asked(connector, good, good)] == [0, 0]
    with pytest.raises(RefusedOffsets, match="entry 2: "):
        asked(connector, good, (without(connector, OTHER_FIELD[connector]), {"offset": 0}))


@every_connector
@pytest.mark.parametrize("offset", [{}, {"unused_offset_key": 0}, "10", 10, [10]])
def test_mm2_045_076_135_the_offset_has_its_key(connector: Connector, offset: Any) -> None:
    with pytest.raises(RefusedOffsets, match=r'write \{"offset": N\}'):
        asked(connector, (PARTITION[connector], offset))


@every_connector
@pytest.mark.parametrize("offset", [*NEITHER, -1, -420])
def test_mm2_046_077_136_the_offset_is_a_java_long_from_0(connector: Connector, offset: Any) -> None:
    refused(connector, PARTITION[connector], offset, reason="must be an integer|may not be negative|can only be 0")


@pytest.mark.parametrize("connector", [CHECKPOINT, HEARTBEAT])
@pytest.mark.parametrize("offset", [1, 10, 2**31])
def test_mm2_046_077_the_offset_can_only_be_0(connector: Connector, offset: int) -> None:
    refused(connector, PARTITION[connector], offset, reason="can only be 0")


@pytest.mark.parametrize("offset", [0, 10, 2**31, 2**63 - 1])
def test_mm2_136_offsets_of_the_source_connector_are_accepted(offset: int) -> None:
    (change,) = asked(SOURCE, (PARTITION[SOURCE], {"offset": offset}))
    assert (change.offset, change.is_for(SOURCE)) == (offset, True)


@every_connector
def test_mm2_047_078_137_a_tombstone_is_always_accepted(connector: Connector) -> None:
    for partition in (PARTITION[connector], without(connector, OTHER_FIELD[connector]), *RUBBISH):
        (change,) = asked(connector, (partition, None))
        assert change == OffsetChange(partition, None)
        assert change.is_for(connector) == (partition == PARTITION[connector])


@every_connector
def test_mm2_048_079_138_valid_and_empty_offsets_are_accepted(connector: Connector) -> None:
    assert asked(connector) == ()
    assert asked(connector, (PARTITION[connector], {"offset": 0})) == (OffsetChange(PARTITION[connector], 0),)


# -- requests and records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_", [None, [], {}, {"offsets": {}}, {"offsets": [1]}, {"offsets": [{"partition": {}}]}]
)
def test_malformed_offsets_request_is_refused_with_the_valid_form(request_: Any) -> None:
    with pytest.raises(RefusedOffsets, match=r"a request is|needs a partition and an offset"):
        parse_changes(SOURCE, request_)
    with pytest.raises(RefusedOffsets, match="a partition is an object"):
        asked(SOURCE, ("t-0", None))


@pytest.mark.parametrize(
    ("connector", "offset", "key", "value"),
    [
        (SOURCE, 123, b'["MirrorSourceConnector",{"cluster":"primary","partition":2,"topic":"t1"}]', b'{"offset":123}'),
        (
            CHECKPOINT,
            0,
            b'["MirrorCheckpointConnector",{"partition":2,"topic":"primary.t1","group":"g"}]',
            b'{"offset":0}',
        ),
        (
            HEARTBEAT,
            None,
            b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"primary","targetClusterAlias":"backup"}]',
            None,
        ),
    ],
)
def test_a_record_has_connects_bytes_whatever_the_order_of_the_request(
    connector: Connector, offset: int | None, key: bytes, value: bytes | None
) -> None:
    shuffled = dict(reversed(PARTITION[connector].items()))
    (change,) = asked(connector, (shuffled, None if offset is None else {"offset": offset}))
    assert encode_change(connector.value, change) == (key, value)


@given(st.text(max_size=8), st.text(max_size=8), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_records_of_the_source_connector_are_those_of_progress(
    cluster: str, topic: str, partition: int, offset: int
) -> None:
    asked_for = {"topic": topic, "partition": partition, "cluster": cluster}
    (change,) = asked(SOURCE, (asked_for, {"offset": offset}))
    assert encode_change("n", change) == encode_source_progress(cluster, topic, partition, offset, "n")


def test_listed_offsets_can_be_requested_again() -> None:
    changes = asked(SOURCE, (PARTITION[SOURCE], {"offset": 7}), (PARTITION[SOURCE] | {"partition": 3}, None))
    assert listing(changes) == {"offsets": [{"partition": PARTITION[SOURCE], "offset": {"offset": 7}}]}
    assert parse_changes(SOURCE, listing(changes)) == changes[:1]


def folded(*records: tuple[bytes | None, bytes | None]) -> OffsetFold:
    fold = OffsetFold()
    for record in records:
        fold.apply(*record)
    return fold


@pytest.mark.parametrize("connector", list(Connector))
def test_offset_record_is_read_only_by_its_connector_until_a_reset(connector: Connector) -> None:
    one, none = asked(connector, (PARTITION[connector], {"offset": 0}), (PARTITION[connector], None))
    written, reset = encode_change("mine", one), encode_change("mine", none)
    fold = folded(written, encode_change("other", none))
    assert (fold.for_connector("mine"), fold.for_connector("other"), fold.for_connector("another")) == (
        {written[0]: one},
        {},
        {},
    )
    assert folded(written, reset).for_connector("mine") == {}
    assert folded(reset, written).for_connector("mine") == {written[0]: one}


def test_last_record_of_a_key_counts_and_keys_compare_by_bytes() -> None:
    key, blanks = b'["mine",{"a":1}]', b'["mine", {"a": 1}]'
    fold = folded((key, b'{"offset":7}'), (blanks, b'{"offset":8}'), (key, b'{"offset":3}'))
    assert fold.for_connector("mine") == {blanks: OffsetChange({"a": 1}, 8), key: OffsetChange({"a": 1}, 3)}
    assert list(fold.for_connector("mine")) == [blanks, key], "as they were written"


@pytest.mark.parametrize("key", [b'["mine",{"rubbish":1}]', b'["mine",null]', b'["mine",{}]'])
def test_malformed_own_partition_is_found_and_can_be_reset(key: bytes) -> None:
    assert [change.offset for change in folded((key, b'{"offset":3}')).for_connector("mine").values()] == [3]


@pytest.mark.parametrize(
    "value", [None, b"null", b'{"pos":3}', b'{"offset":true}', b'{"offset":null}', b'{"offset":-1}', b"7"]
)
def test_value_without_an_offset_is_a_reset(value: bytes | None) -> None:
    key = b'["mine",{}]'
    assert folded((key, b'{"offset":3}'), (key, value)).for_connector("mine") == {}


@pytest.mark.parametrize("key", [None, b"", b"{", b'"mine"', b'["mine"]', b'["mine",3]', b"[7,{}]", b"\xff"])
def test_record_that_is_no_offset_is_skipped(key: bytes | None) -> None:
    with pytest.raises(MalformedRecord, match="offset of Connect"):
        folded((key, b'{"offset":1}'))


@pytest.mark.parametrize("value", [b"{", b'{"offset":9223372036854775808}', b"[" * 200_000, b'{"offset":NaN}'])
def test_value_that_no_connector_writes_changes_nothing(value: bytes) -> None:
    key = b'["mine",{}]'
    fold = folded((key, b'{"offset":3}'))
    with pytest.raises(MalformedRecord, match="offset of Connect"):
        fold.apply(key, value)
    assert [change.offset for change in fold.for_connector("mine").values()] == [3]


def test_source_partition_is_none_for_malformed_and_other_connectors() -> None:
    assert OffsetChange(PARTITION[SOURCE], 1).source_partition() == ("primary", ("t1", 2))
    for partition in (None, {}, PARTITION[CHECKPOINT], PARTITION[SOURCE] | {"more": 1}):
        assert OffsetChange(partition, 1).source_partition() is None
