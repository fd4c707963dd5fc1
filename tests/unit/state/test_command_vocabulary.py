"""Commands: their verbs, their scopes and the services that answer them."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.commands import command_vocabulary
from lockstep_state.commands.command_vocabulary import (
    FLOW,
    VERBS,
    Connector,
    Scope,
    ScopeKind,
    UnknownVerb,
    answering_services,
    service_connector,
)

OWNERS = {"topic-sync", "checkpoint", "heartbeat"}
SOURCE = {"topic-sync", "acl-sync", "data-plane"}

names = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="._-"), min_size=1, max_size=12)
scopes = st.one_of(
    st.just(FLOW),
    st.builds(Scope.for_connector, st.sampled_from(Connector)),
    st.builds(lambda n: Scope(ScopeKind.SLOT, number=n), st.integers(0, 99)),
    st.builds(lambda t: Scope(ScopeKind.TOPIC, t), names),
    st.builds(lambda t, n: Scope(ScopeKind.PARTITION, t, n), names, st.integers(0, 9_999)),
    st.builds(lambda g: Scope(ScopeKind.GROUP, g), st.text(min_size=1, max_size=12)),
)


@given(scopes)
def test_a_scope_reads_as_it_prints(scope: Scope) -> None:
    assert Scope.parse(str(scope)) == scope


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("", FLOW),
        ("flow", FLOW),
        ("connector:A->B.MirrorSourceConnector", Scope.for_connector(Connector.SOURCE)),
        ("partition:orders-2026-3", Scope(ScopeKind.PARTITION, "orders-2026", 3)),
        ("topic:a:b", Scope(ScopeKind.TOPIC, "a:b")),
        ("group:a/b c", Scope(ScopeKind.GROUP, "a/b c")),
    ],
)
def test_scopes_are_read(text: str, scope: Scope) -> None:
    assert Scope.parse(text) == scope


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("orders", "write flow, connector:NAME"),
        ("topic:", "write flow, connector:NAME"),
        ("flow:x", "write flow, connector:NAME"),
        ("colour:blue", "write flow, connector:NAME"),
        ("connector:Mirror", "there are MirrorSourceConnector, MirrorCheckpointConnector, MirrorHeartbeatConnector"),
        ("slot:two", "'two', which is no number of 32 bits"),
        ("slot:-1", "'-1', which is no number of 32 bits"),
        ("partition:orders", "names no partition"),
        ("partition:-3", "names no partition"),
        ("partition:orders-x", "'x', which is no number of 32 bits"),
    ],
)
def test_scope_with_a_bad_form_is_refused_with_the_valid_forms(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Scope.parse(text)


WORK = (command_vocabulary.PAUSE, command_vocabulary.RESUME, command_vocabulary.STOP, command_vocabulary.RESTART)
OFFSETS = (command_vocabulary.OFFSETS_LIST, command_vocabulary.OFFSETS_ALTER, command_vocabulary.OFFSETS_RESET)


@pytest.mark.parametrize(
    ("verbs", "scope", "services"),
    [
        (WORK, "flow", OWNERS),
        (WORK, "connector:MirrorSourceConnector", {"topic-sync"}),
        (WORK, "connector:MirrorCheckpointConnector", {"checkpoint"}),
        (WORK, "connector:MirrorHeartbeatConnector", {"heartbeat"}),
        (WORK, "slot:1", {"topic-sync"}),
        *((set(WORK) - {command_vocabulary.STOP}, text, {"topic-sync"}) for text in ("topic:t", "partition:t-3")),
        ((command_vocabulary.REFRESH,), "flow", set(command_vocabulary.SERVICES)),
        ((command_vocabulary.REFRESH,), "connector:MirrorSourceConnector", SOURCE),
        ((command_vocabulary.REFRESH,), "connector:MirrorHeartbeatConnector", {"heartbeat"}),
        (OFFSETS, "connector:MirrorSourceConnector", {"data-plane"}),
        (OFFSETS, "connector:MirrorCheckpointConnector", {"checkpoint"}),
    ],
)
def test_command_is_answered_by_the_owners_of_its_scope(verbs: Collection[str], scope: str, services: set[str]) -> None:
    assert [answering_services(verb, Scope.parse(scope)) for verb in verbs] == [services] * len(verbs)


@pytest.mark.parametrize(
    ("verb", "scope", "text"),
    [
        *((verb, "flow", "only for connector") for verb in OFFSETS),
        (command_vocabulary.STOP, "topic:orders", "stop is not for a topic: only for flow, connector, slot"),
        (command_vocabulary.PAUSE, "group:g", "pause is not for a group"),
        ("dance", "flow", "no command 'dance'; there are refresh, pause, resume"),
    ],
)
def test_command_for_a_wrong_scope_or_of_an_unknown_verb_is_refused(verb: str, scope: str, text: str) -> None:
    with pytest.raises(UnknownVerb if verb == "dance" else ValueError, match=text):
        answering_services(verb, Scope.parse(scope))


def test_every_verb_has_an_answer_of_its_own() -> None:
    answers = [command.answer for command in VERBS.values()]
    assert len(set(answers)) == len(answers)
    assert all(command.scopes and command.summary for command in VERBS.values())


def test_services_are_parts_of_connectors() -> None:
    assert {s for s in command_vocabulary.SERVICES if service_connector(s) is Connector.SOURCE} == SOURCE


def test_commands_about_a_group_go_to_its_partition_others_to_the_first() -> None:
    assert Scope.parse("group:orders-app").commands_partition == partition_for(b"orders-app", 6)
    assert {Scope.parse(text).commands_partition for text in ("", "topic:t", "connector:MirrorSourceConnector")} == {0}


def test_owner_of_an_unknown_wanted_scope_is_topic_sync() -> None:
    assert command_vocabulary.owner_of_wanted("colour:blue") == "topic-sync"
