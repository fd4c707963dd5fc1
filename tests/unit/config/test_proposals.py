"""Unknown keys: the proposed key counts where it is proposed, and some are mistakes."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockstep_config import ConfigurationError, load
from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.renamed_keys import RENAMED_KEYS
from lockstep_config.loader.settings_file import UNKNOWN_VARIABLE
from lockstep_config.resolve.key_suggestions import known_names, suggest_key

from .conftest import LoadText, MistakesOf

WITHOUT_EFFECT = [
    *("A.max.poll.records", "max.tasks", "A->B.max.tasks", "internal.topic.replication.factor"),
    *("heartbeats.topic.retention.ms", "exclude.internal.topics", "A.exclude.internal.topics", "my.policy.suffix"),
    *("A->B.my.policy.suffix", "C.bootstrap.servers", "C.security.protocol", "C.consumer.fetch.min.bytes"),
    *("A->C.enabled", "C->D.topics", "A->A.enabled", "A.acks", "zookeeper.connect", "A.zookeeper.connect"),
    *("A.consumer.fetch.min.byte", "refresh.topics.interval.second", "auto.create.topics.enable", "num.streams"),
    *("replication.facto", "A->B.replication.enabled", "enable.ssl.certificate.verification", "A.ssl.foo"),
    *("C.replication.factor", "com.example.policy", "B->A.checkpoints.topic.partitions", "log4j.rootLogger"),
]
MISTAKES = [
    *("topics.whitelist", "A->B.topics.whitelist", "A->B.topcs", "A->B.topic", "A->B.Topics", "topics_exclude"),
    *("A->B.topics.exlude", "exclude.topics", "A->B.group", "groups.blacklist.pattern", "replication.polcy.class"),
    *("a.security.protocol", "A-B.topics", "A.B.topics", "A>B.enabled", "A_to_B.enabled", "A.ssl.truststore.locaton"),
    *("A.consumer.isolation.levl", "A->B.source.consumer.auto.offset.rest", "lockstep.on.refusd", "lockstep.foo"),
    *("replication.policy.clas", "A->B.sync.topic.acl.enabled", "sync.consumer.offsets.enabled", "A.sasl.mechanisms"),
    *("${ALIAS}.security.protocol", "A->B.lockstep.foo", "a->B.topics", "offset-syncs.topic.locations"),
]


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_unknown_key_ignored_by_mm2_is_named_with_its_line(key: str, load_text: LoadText) -> None:
    loaded = load_text(f"{key} = 3\n")
    (remark,) = loaded.unused
    assert (remark.line, remark.key) == (5, key)
    assert str(remark).startswith(f"{loaded.path}:5: {key}: has no effect: ")
    assert loaded == load_text(f"{key} = 3\n", environment={UNKNOWN_VARIABLE: "warn"})


@pytest.mark.parametrize("key", MISTAKES)
def test_unknown_key_near_a_decisive_key_is_a_mistake(key: str, mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(f"{key} = 3\n")
    assert mistake.startswith(f"5 {key}: ")


@pytest.mark.parametrize("key", [*WITHOUT_EFFECT, *MISTAKES])
def test_the_file_decides_for_all_of_them_and_a_command_before_it(key: str, load_text: LoadText) -> None:
    def level(says: str, asked: Mapping[str, str]) -> str:
        try:
            loaded = load_text(f"{key} = 3\nlockstep.unknown.keys = {says}\n", environment=asked)
        except ConfigurationError as exc:
            word, mistakes = "error", exc.problems
        else:
            word, mistakes = "warn", loaded.unused
        assert [(mistake.line, mistake.key) for mistake in mistakes] == [(5, key)]
        return word

    assert (level("warn", {}), level("error", {})) == ("warn", "error")
    assert level("warn", {UNKNOWN_VARIABLE: "error"}) == "error"
    assert level("error", {UNKNOWN_VARIABLE: "warn"}) == "warn"


def test_unknown_keys_setting_refuses_another_value(mistakes_of: MistakesOf) -> None:
    assert mistakes_of("lockstep.unknown.keys = ignore\n") == [
        "5 lockstep.unknown.keys: is 'ignore': it takes error or warn"
    ]


def test_keys_that_mm2_knows_are_no_matter_of_it(load_text: LoadText) -> None:
    loaded = load_text("connector.class = x\ntasks.max = 2\n", environment={UNKNOWN_VARIABLE: "error"})
    assert [remark.key for remark in loaded.unused] == ["connector.class"]


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("topics.whitelist", "write topics;"),
        ("A->B.topics.whitelist", "write A->B.topics;"),
        ("max.tasks", "write tasks.max"),
        ("A->B.max.tasks", "write A->B.tasks.max"),
        ("heartbeats.topic.retention.ms", "the topic is compacted: nothing in it is too old"),
        ("replication.enabled", "write SOURCE->TARGET.enabled"),
        ("B->A.replication.enabled", "write B->A.enabled"),
        ("enable.ssl.certificate.verification", "certificates are always checked"),
        ("A.sasl.mechanisms", "write A.sasl.mechanism"),
        ("brokers", "write ALIAS.bootstrap.servers"),
        ("sync.group.offsets.interval.ms", "write sync.group.offsets.interval.seconds; in seconds"),
        ("A.max.poll.records", "it is a property of consumers, and whole batches are fetched"),
    ],
)
def test_common_misspelling_has_its_proposal(key: str, instead: str, mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(f"{key} = 3\n", environment={UNKNOWN_VARIABLE: "error"})
    assert f"lockstep knows; {instead}" in mistake.replace("Lockstep", "lockstep"), mistake


def test_a_word_too_much_before_the_alias(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    (remark,) = load_text("cluster.A.bootstrap.servers = a:1\n").unused
    assert remark.message.endswith("remove it; A.bootstrap.servers is set, and counts")
    (mistake,) = mistakes_of("clusters.A.security.protocol = SSL\n")
    assert mistake.endswith("did you mean A.security.protocol?")


def test_key_that_is_set_already_is_not_proposed(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    (remark,) = load_text("topics = x\ntopics.whitelist = y\n").unused
    assert remark.message.endswith("remove it; topics is set, and counts")
    (mistake,) = mistakes_of("A->B.topics = x\nA->B.topcs = y\n")
    assert mistake.endswith("remove it; A->B.topics is set, and counts")


PREFIX = {KeyLevel.TOP: "", KeyLevel.CLUSTER: "A.", KeyLevel.FLOW: "A->B."}


def slips_of(name: str) -> list[str]:
    """A letter less, one too much, two exchanged; another mark, another order, a plural."""
    middle = len(name) // 2
    words = name.split(".")
    return [
        name[:middle] + name[middle + 1 :],
        name[:middle] + "x" + name[middle:],
        name[:middle] + name[middle : middle + 2][::-1] + name[middle + 2 :],
        name.replace(".", "_"),
        ".".join([*words[1:], words[0]]),
        f"{name}s",
        ".".join(words[:-1]),
    ]


def proposals(message: str) -> list[str]:
    said = re.search(r"(?:did you mean|write) (.*?)(?:\?|;|$)", message)
    names = re.findall(r"[^\s,]*[.\w]\.[^\s,]*|\b(?:topics|groups|enabled)\b", said[1]) if said else []
    return [
        name.replace("SOURCE->TARGET", "A->B").replace("ALIAS", "A").replace("SOURCE", "A").replace("TARGET", "B")
        for name in names
    ]


@pytest.mark.parametrize("scope", KeyLevel)
def test_proposed_key_is_known_in_its_scope(scope: KeyLevel, tmp_path: Path) -> None:
    keys = set(known_names(scope))
    names = dict.fromkeys((*RENAMED_KEYS, *(slip for name in known_names(scope) for slip in slips_of(name))))
    proposed: dict[str, str] = {}
    for name in names:
        if name in keys or name in KEYS or not name:
            continue
        guess = suggest_key(name, scope)
        assert set(guess.keys) <= keys, name
        for key in proposals(guess.advice.replace("{prefix}", PREFIX[scope])):
            proposed.setdefault(key, name)
    assert len(proposed) > 60
    path = tmp_path / "mm2.properties"
    base = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
    taken = {"clusters", "A.bootstrap.servers", "B.bootstrap.servers", "A->B.enabled", "lockstep.unknown.keys"}
    lines = "".join(f"{key} = \\u0001\n" for key in proposed if key not in taken)
    path.write_text(base + lines)
    try:
        loaded = load(path, {UNKNOWN_VARIABLE: "error"})
        remarks = [*loaded.unused]
    except ConfigurationError as exc:
        remarks = [*exc.problems]
    useless = [
        mistake for mistake in remarks if "is no key" in mistake.message or mistake.message.startswith("has no effect")
    ]
    assert not useless, [(proposed[remark.key], str(remark)) for remark in useless]


def test_older_names_differ_from_current_keys() -> None:
    for scope in KeyLevel:
        assert not set(RENAMED_KEYS) & set(known_names(scope))
