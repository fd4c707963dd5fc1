"""`lockstep.rename`, and Connect's `RegexRouter` in an MM2 file."""

import pytest

from lockstep_config.flow.model import FlowSettings
from lockstep_rules.policy import DefaultReplicationPolicy, LegacyReplicationPolicy
from lockstep_state.names import Flow

from .conftest import LoadText, MistakesOf, ab

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
BOTH_WAYS = IDENTITY + "B->A.enabled = true\n"
ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"


def router(
    name: str = "r", regex: str = "orders-(.*)", replacement: str = "eu.orders.$1", prefix: str = "A->B."
) -> str:
    """Return the lines of a RegexRouter."""
    lines = {"type": ROUTER, "regex": regex, "replacement": replacement}
    return "".join(f"{prefix}transforms.{name}.{key} = {value}\n" for key, value in lines.items())


def names(settings: FlowSettings, *topics: str) -> list[str]:
    return [settings.remote_topic(topic) for topic in topics]


@pytest.mark.parametrize(
    "lines",
    [
        "A->B.lockstep.rename = orders-(.*) -> eu.orders.$1",
        "lockstep.rename = orders-(.*) -> eu.orders.$1 ; orders-x -> never",
        f"A->B.transforms = r\n{router()}",
        f"transforms = r\n{router(prefix='')}",
        f"transforms = r\n{router(prefix='')}".replace(ROUTER, "RegexRouter"),
        f"transforms = r\n{router(prefix='', regex='never')}A->B.transforms.r.regex = orders-(.*)",
    ],
)
def test_topics_are_renamed(load_text: LoadText, lines: str) -> None:
    settings = ab(load_text, IDENTITY + lines)
    assert names(settings, "orders-x", "t", "heartbeats") == ["eu.orders.x", "t", "A.heartbeats"]
    assert settings.renames
    assert settings.keeps_names
    assert settings.hides_origin("orders-x")
    assert settings.hides_origin("t")


def test_rename_applies_to_the_name_that_the_policy_gives(load_text: LoadText) -> None:
    settings = ab(load_text, "A->B.lockstep.rename = A\\\\.orders-(.*) -> eu.orders.$1")
    assert names(settings, "orders-x", "t") == ["eu.orders.x", "A.t"]
    assert settings.hides_origin("orders-x")
    assert not settings.hides_origin("t")


def test_flow_without_renames_has_none(load_text: LoadText) -> None:
    assert not ab(load_text).renames


def test_mirrormaker_1_flow_renames_too(load_text: LoadText) -> None:
    settings = ab(load_text, IDENTITY + "A->B.lockstep.legacy.group = g\nA->B.lockstep.rename = a -> b")
    assert isinstance(settings.policy, LegacyReplicationPolicy)
    assert names(settings, "a", "c") == ["b", "c"]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("lockstep.rename = orders", "has 'orders', which is no rename: write PATTERN -> NAME"),
        ("lockstep.rename = orders ->", "has 'orders ->', which is no rename"),
        ("lockstep.rename = orders -> $1", "the replacement '$1' names group 1, but the pattern has 0"),
        ("lockstep.rename = a --> b", "has 'a -', which matches no topic: a topic's name has only letters"),
        ("lockstep.rename = a ->> b", "renames 'a' to '> b', which no topic may be called"),
        ("lockstep.rename = a -> b, c -> d", "'.', '_' and '-'. Write ; between two renames"),
        ("lockstep.rename = a -> ..", "renames 'a' to '..', which no topic may be called"),
        (f"lockstep.rename = a -> {'x' * 250}", "which has 250 characters, and 249 are allowed"),
        (f"transforms = r\n{router(replacement='', prefix='')}", "to '', which no topic may be called"),
        ("lockstep.rename = ( -> x", "regular expression '(': a ( without its )"),
        ("transforms = r", "names 'r', but there is no transforms.r.type"),
        (f"transforms = r\ntransforms.r.type = {ROUTER}", "without transforms.r.regex and transforms.r.replacement"),
        (
            f"transforms = r\n{router(prefix='')}transforms.r.predicate = p",
            "transforms.r.predicate: is refused: the pattern of lockstep.rename decides which topics are renamed",
        ),
        (f"transforms = r\n{router(replacement='$2', prefix='')}", "names group 2, but the pattern has 1"),
        (
            "transforms = m\ntransforms.m.type = org.apache.kafka.connect.transforms.MaskField$Value",
            "which is refused: no Java runs for records here. Only RegexRouter, Filter, InsertHeader, DropHeaders of",
        ),
        (
            f"transforms = r, s\n{router(prefix='')}{router('s', prefix='')}",
            "has 2 RegexRouters, which Connect applies one after another",
        ),
        (
            f"transforms = r\n{router(prefix='')}lockstep.rename = a -> b",
            "renames topics, and so does lockstep.rename: keep one of the two",
        ),
    ],
)
def test_what_cannot_be_renamed_is_a_mistake(mistakes_of: MistakesOf, lines: str, sentence: str) -> None:
    mistakes = mistakes_of(IDENTITY + lines)
    assert any(sentence in mistake for mistake in mistakes), mistakes


def test_pattern_without_the_policys_prefix_is_a_mistake(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of("A->B.lockstep.rename = orders-(.*) -> x$1 ; (A|B)\\\\.t -> t ; A.t -> u")
    assert "has 'orders-(.*)', which matches no topic" in mistake


def test_line_for_all_flows_may_have_the_prefix_of_each(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    lines = "B->A.enabled = true\n{}lockstep.rename = A\\\\.x -> B.y ; B\\\\.z -> A.w"
    configuration = load_text(lines.format(""))
    assert names(configuration.flow(Flow("A", "B")), "x", "z") == ["B.y", "A.z"]
    assert names(configuration.flow(Flow("B", "A")), "x", "z") == ["B.x", "A.w"]
    (mistake,) = mistakes_of(lines.format("A->B."))
    assert r"has 'B\\.z', which matches no topic" in mistake


def test_renames_beside_a_python_policy_are_a_mistake(mistakes_of: MistakesOf) -> None:
    policy = "lockstep.replication.policy.class = lockstep_rules.policy:DefaultReplicationPolicy\n"
    assert any(
        "let that class name the topics" in mistake for mistake in mistakes_of(f"{policy}lockstep.rename = a -> b")
    )


def test_transform_that_no_chain_names_has_no_effect(load_text: LoadText) -> None:
    unused = load_text(router()).unused
    assert {entry.message for entry in unused} == {"has no effect: no transform is named by `transforms`"}


class TestBothWays:
    def test_producer_ids_tell_origins(self, load_text: LoadText) -> None:
        back = "B->A.lockstep.rename = eu\\\\.orders\\\\.(.*) -> orders-$1"
        configuration = load_text(f"{BOTH_WAYS}A->B.lockstep.rename = orders-(.*) -> eu.orders.$1\n{back}")
        assert [flow.data_plane.provenance for flow in configuration.flows] == ["local", "local"]
        assert names(configuration.flow(Flow("B", "A")), "eu.orders.x") == ["orders-x"]

    def test_topics_may_meet_under_any_name(self, load_text: LoadText) -> None:
        """The selections of the two flows have no name in common, but what A->B carries is what B->A selects."""
        lines = "A->B.topics = orders-.*\nB->A.topics = eu.*\nA->B.lockstep.rename = orders-(.*) -> eu.$1"
        configuration = load_text(BOTH_WAYS + lines)
        assert [flow.data_plane.provenance for flow in configuration.flows] == ["local", "local"]

    def test_names_of_some_topics_that_grow_for_ever_are_a_mistake(self, mistakes_of: MistakesOf) -> None:
        """No topic that the filter names is renamed."""
        (mistake,) = mistakes_of(f"{BOTH_WAYS}A->B.lockstep.rename = orders-[0-9]+(.*) -> orders-1x$1")
        assert "leads round: orders-1t of A is orders-1xt on B" in mistake

    def test_alias_may_be_taken_away(self, load_text: LoadText) -> None:
        lines = "B->A.enabled = true\nA->B.lockstep.rename = A\\\\.(.*) -> $1\n"
        (note,) = load_text(lines).notes
        assert "makes t of A t on B, and B->A copies the same records back as B.t" in note.message
        assert not load_text(f"{lines}B->A.topics = x.*").notes
        other = load_text(f"{lines}B->A.lockstep.rename = B\\\\.x-(.*) -> $1").notes
        assert any("B->A copies the same records back as B.t" in note.message for note in other)
        back = load_text(f"{lines}B->A.lockstep.rename = B\\\\.(.*) -> $1").notes
        assert not any("copies the same records back" in note.message for note in back)

    def test_topic_without_a_way_back_is_noted(self, load_text: LoadText) -> None:
        lines = f"{BOTH_WAYS}A->B.lockstep.rename = orders-(.*) -> eu.$1\n"
        noted = [note.message for note in load_text(lines).notes]
        sentence = "makes orders-t of A eu.t on B, and B->A copies what is written there to eu.t on A, not to orders-t"
        assert any(sentence in note for note in noted), noted
        back = load_text(f"{lines}B->A.lockstep.rename = eu\\\\.(.*) -> orders-$1").notes
        assert not any("not to" in note.message for note in back)

    def test_names_that_grow_for_ever_are_a_mistake(self, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of(f"{BOTH_WAYS}A->B.lockstep.rename = (.*) -> eu.$1")
        assert "leads round: t of A is eu.t on B, eu.t on A, eu.eu.t on B" in mistake
        assert "let one of A->B and B->A take back the names that the other one gives" in mistake


def test_default_policy_is_that_of_mirrormaker(load_text: LoadText) -> None:
    policy = ab(load_text).policy
    assert isinstance(policy, DefaultReplicationPolicy)
    assert not policy.renames
