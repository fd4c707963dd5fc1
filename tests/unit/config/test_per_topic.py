"""A value for every topic, and others for some."""

import pickle

import pytest

from lockstep_config.keys.key_values import PerTopic, per_topic
from lockstep_config.text.values import BadValue, integer
from tests.unit.config.conftest import LoadText, MistakesOf


@pytest.mark.parametrize(
    ("text", "topic", "value"),
    [
        ("", "orders", 7),
        ("1", "orders", 1),
        ("1, orders=2", "orders", 2),
        ("1, orders=2", "orders2", 1),
        ("orders.*=2, 1, orders2=3", "orders2", 2),
        ("orders=2", "other", 7),
        (" a|b = 2 ", "b", 2),
    ],
)
def test_the_first_pattern_that_matches_counts(text: str, topic: str, value: int) -> None:
    assert per_topic(text, integer, 7).for_topic(topic) == value


@pytest.mark.parametrize("text", ["1, 2", "=2", "a=x", "a=", "1,,a=x"])
def test_per_topic_list_with_a_bad_form_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        per_topic(text, integer, 7)


def test_per_topic_setting_can_be_pickled() -> None:
    setting = per_topic("halt, orders.*=skip", str.strip, "")
    assert pickle.loads(pickle.dumps(setting)).for_topic("orders-1") == "skip"  # noqa: S301 - our own bytes


def test_policies_are_read_per_flow_and_topic(load_text: LoadText) -> None:
    plane = (
        load_text(
            "lockstep.on.gap = skip\nA->B.lockstep.on.refused = quarantine, audit.*=halt\n"
            "A->B.lockstep.max.bytes.per.second = logs=1000\n"
        )
        .flows[0]
        .data_plane
    )
    assert plane.on_gap == PerTopic("skip")
    assert (plane.on_refused.for_topic("orders"), plane.on_refused.for_topic("audit-1")) == ("quarantine", "halt")
    assert (plane.on_recreate.for_topic("x"), plane.on_doubt.for_topic("x")) == ("halt", "halt")
    assert (plane.max_bytes_per_s.for_topic("logs"), plane.max_bytes_per_s.default) == (1000, None)


def test_mistakes_in_them_are_named(mistakes_of: MistakesOf) -> None:
    mistakes = mistakes_of(
        "lockstep.on.gap = stop\nlockstep.on.doubt = halt, a.*=skip\nlockstep.max.bytes.per.second = 0\n"
        "lockstep.on.refused = ([=halt\n"
    )
    assert [line.split(":")[0] for line in mistakes] == [
        "5 lockstep.on.gap",
        "6 lockstep.on.doubt",
        "7 lockstep.max.bytes.per.second",
        "8 lockstep.on.refused",
    ]
    assert "halt, skip or restart" in mistakes[0]
