"""Names of flows and of their topics."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.filters import DEFAULT_TOPICS, DEFAULT_TOPICS_EXCLUDE, NameFilter
from lockstep_state.names import Flow, commands_topic, events_topic, progress_topic, service_group, state_topic

FLOW = Flow("A", "B")
aliases = st.text(st.characters(codec="utf-8", exclude_characters="->"), min_size=1).filter(lambda a: a == a.strip())


@given(aliases, aliases)
def test_flow_parses_its_own_text(source: str, target: str) -> None:
    assert Flow.parse(str(Flow(source, target))) == Flow(source, target)


def test_blanks_round_an_alias_do_not_count() -> None:
    assert Flow.parse(" A -> B ") == FLOW


@pytest.mark.parametrize("text", ["", "A", "A>B", "->", "A->", "->B", " -> B"])
def test_malformed_flow_is_refused_with_the_valid_form(text: str) -> None:
    with pytest.raises(ValueError, match="write it as SOURCE->TARGET"):
        Flow.parse(text)


def test_mm2_019_flows_are_equal_by_source_and_target_and_kind() -> None:
    assert Flow("A", "B") == FLOW
    assert hash(Flow("A", "B")) == hash(FLOW)
    assert {FLOW, Flow("B", "A"), Flow("A", "C")} == {Flow("A", "C"), FLOW, Flow("B", "A")}
    assert Flow("A", "C") != FLOW
    assert Flow("C", "B") != FLOW
    of_another_kind: object = ("A", "B")
    assert of_another_kind != FLOW


def test_control_topics_are_named_after_the_source() -> None:
    assert state_topic(FLOW) == "mm2-lockstep-state.A.internal"
    assert events_topic(FLOW) == "mm2-lockstep-events.A.internal"
    assert commands_topic(FLOW) == "mm2-lockstep-commands.A.internal"
    assert progress_topic(FLOW) == "mm2-offsets.A.internal"
    assert service_group("topic-sync", FLOW) == "lockstep-topic-sync-A-B"


def test_an_instance_of_its_own_carries_its_group_id_in_every_name() -> None:
    assert state_topic(FLOW, "west") == "mm2-lockstep-west-state.A.internal"
    assert events_topic(FLOW, "west") == "mm2-lockstep-west-events.A.internal"
    assert commands_topic(FLOW, "west") == "mm2-lockstep-west-commands.A.internal"
    assert service_group("topic-sync", FLOW, "west") == "lockstep-west-topic-sync-A-B"


@pytest.mark.parametrize("topic", [state_topic, events_topic, commands_topic])
def test_an_mm2_with_its_default_excludes_leaves_our_topics_alone(topic: Callable[[Flow, str], str]) -> None:
    assert not NameFilter(DEFAULT_TOPICS, DEFAULT_TOPICS_EXCLUDE).matches(topic(FLOW, "west"))
