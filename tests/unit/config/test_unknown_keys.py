"""Keys that neither MirrorMaker nor Lockstep knows: named with their place, and a mistake where they are near one that
decides what is copied. What is proposed loads, in that place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.keys.key_types import KeyLevel, KeyStatus
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.renamed_keys import RENAMED_KEYS, find_renamed
from lockstep_config.resolve.key_suggestions import find_misspelt_alias, flow_meant, known_names, suggest_key

from .conftest import LoadText, MistakesOf

MISTAKES = [
    ("A->B.topcis", "did you mean A->B.topics?"),
    ("topics.exlude", "did you mean topics.exclude?"),
    ("A->B.replication.policy.clas", "did you mean A->B.replication.policy.class?"),
    ("replication.policy.seperator", "did you mean replication.policy.separator?"),
    ("A->B.group.exclude", "did you mean A->B.groups.exclude?"),
    ("A.bootstrap.servrs", "A.bootstrap.servers is set, and counts"),
    ("A.security.protocl", "did you mean A.security.protocol?"),
    ("A.consumer.isolation.levl", "did you mean A.consumer.isolation.level?"),
    ("lockstep.tracin", "did you mean lockstep.tracing?"),
    ("A-B.topics", "did you mean A->B.topics?"),
    ("A.B.topics", "did you mean A->B.topics?"),
    ("${SOURCE}->B.topics", "${SOURCE} is a placeholder that nobody filled"),
    ("{{flow}}.topics", "{{flow}} is part of a template to be rendered first"),
]


@pytest.mark.parametrize(("key", "said"), MISTAKES)
def test_unknown_key_near_a_selection_key_is_a_mistake(
    key: str, said: str, mistakes_of: MistakesOf, load_text: LoadText
) -> None:
    (mistake,) = mistakes_of(f"{key} = x\n")
    assert mistake.startswith(f"5 {key}: ")
    assert said in mistake
    loaded = load_text(f"{key} = x\n", environment={"LOCKSTEP_UNKNOWN_KEYS": "warn"})
    assert [remark.key for remark in loaded.unused] == [key]


class TestOlderNames:
    @pytest.mark.parametrize("name", RENAMED_KEYS)
    def test_replacement_of_an_older_key_has_an_effect(self, name: str) -> None:
        older = RENAMED_KEYS[name]
        assert older.keys or older.note
        for key in older.keys:
            assert (
                KEYS[key].status is not KeyStatus.WITHOUT_EFFECT
                if key in KEYS
                else key in known_names(KeyLevel.CLUSTER)
            )

    @pytest.mark.parametrize(
        ("name", "key"), [("topicsWhitelist", "topics"), ("topics_whitelist", "topics"), ("MAX-TASKS", "tasks.max")]
    )
    def test_the_marks_between_its_words_do_not_count(self, name: str, key: str) -> None:
        older = find_renamed(name)
        assert older is not None
        assert older.keys == (key,)


OPPOSITES = [
    ("topics.whitelist", "topics.blacklist"),
    ("topics.included", "topics.exclude"),
    ("heartbeats.topic.retention.ms", "heartbeats.topic.replication.factor"),
    ("replication.enabled", "heartbeats.replication.enabled"),
    ("emit.heartbeats.disabled", "emit.heartbeats.enabled"),
    ("topics.include", "topics.exclude"),
]


@pytest.mark.parametrize(("name", "never"), OPPOSITES)
@pytest.mark.parametrize("scope", list(KeyLevel))
def test_the_opposite_is_never_proposed(name: str, never: str, scope: KeyLevel) -> None:
    assert never not in suggest_key(name, scope).advice


@given(st.sampled_from([(scope, name) for scope in KeyLevel for name in known_names(scope)]), st.data())
def test_proposal_for_a_slip_is_known_in_its_scope(level_and_key: tuple[KeyLevel, str], data: st.DataObject) -> None:
    """A slip of the pen: a letter missing, doubled, exchanged with the next one, or another word in place of one."""
    scope, name = level_and_key
    index = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("aeqxz.-"))
    slip = data.draw(
        st.sampled_from(
            [
                name[:index] + name[index + 1 :],
                name[:index] + name[index] + name[index:],
                name[:index] + name[index + 1 : index + 2] + name[index] + name[index + 2 :],
                name[:index] + letter + name[index + 1 :],
                name + ".x",
            ]
        )
    )
    if slip in known_names(scope):
        return
    guess = suggest_key(slip, scope)
    assert set(guess.keys) <= set(known_names(scope))
    for proposed in re.findall(r"\{prefix\}([^? ;]+)", guess.advice):
        assert proposed in known_names(scope)


@pytest.mark.parametrize(
    ("alias", "like"),
    [("EAST", "east"), ("eats", "east"), ("dc3", None), ("dc-1", "dc1"), ("west2", None), ("C", None)],
)
def test_an_alias_is_like_another_where_a_slip_makes_one_of_it(alias: str, like: str | None) -> None:
    assert find_misspelt_alias(alias, ["dc1", "dc2", "east", "west1"]) == like


@pytest.mark.parametrize(
    ("key", "flow_key"),
    [
        ("A-B.topics", "A->B.topics"),
        ("A.B.enabled", "A->B.enabled"),
        ("A→B.groups", "A->B.groups"),
        ("AtoB.topics", "A->B.topics"),
        ("A-A.topics", None),
        ("A-B.unheard.of", None),
        ("A->B.topics", None),
    ],
)
def test_an_arrow_in_other_marks_is_known(key: str, flow_key: str | None) -> None:
    assert flow_meant(key, ["A", "B"]) == flow_key
