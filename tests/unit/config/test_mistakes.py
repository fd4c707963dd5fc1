"""Mistakes in mm2.properties: one sentence each, and all of a file together."""

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import ConfigurationError, UnknownFlow, load
from lockstep_config.keys.refused_classes import KEEPS_NAMES, KNOWN_TO_KEEP_NAMES
from lockstep_state.names import Flow

from .conftest import A_TO_B, STRICT, LoadText, MistakesOf

UNKNOWN = "is no key that MirrorMaker or Lockstep knows"
BYTES = "record batches are copied as bytes, so nothing may change the records on their way"
CLASSES = "Java classes cannot run here; only the ones that ship with MirrorMaker are known"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("A.bootstrap.server = a:1", f"{UNKNOWN}: remove it; A.bootstrap.servers is set, and counts"),
        ("A->X.enabled = true", "the flow A->X names 'X', which is not in clusters (A, B)"),
        ("X->Y.enabled = true", "the flow X->Y names 'X' and 'Y', which are not in clusters (A, B)"),
        ("A->A.enabled = true", "the flow A->A leads from A to itself: a flow needs two clusters"),
        ("C.bootstrap.servers = c:1", "'C' is not in clusters (A, B)"),
        ("A>B.enabled = true", "is no key of a flow as it is written; did you mean A->B.enabled?"),
        ("tasks.max = 0", "is 0, out of range: the least it may be is 1"),
        ("tasks.max = many", "is 'many', which is no whole number"),
        ("tasks.max = 1_000", "is '1_000', which is no whole number"),
        ("tasks.max = 3000000000", "is 3000000000, out of range: the most it may be is 2147483647"),
        ("offset.lag.max = -1", "is -1, out of range: the least it may be is 0"),
        ("replication.factor = 0", "is 0, out of range: it takes a number from 1, or -1 for the broker's default"),
        ("replication.factor = -2", "is -2, out of range: the least it may be is -1"),
        ("sync.group.offsets.enabled = yes", "is 'yes', which is no boolean: write true or false"),
        ("A->B.emit.checkpoints.enabled =", "is '', which is no boolean: write true or false"),
        ("offset-syncs.topic.location = here", "is 'here': it takes source or target"),
        ("A->B.use.defaults.from = me", "is 'me': it takes source or target"),
        (
            "replication.policy.separator = /",
            "is '/', which a topic's name cannot hold: use letters, digits, '.', '_', '-'",
        ),
        ("transforms = mask", "names 'mask', but there is no transforms.mask.type"),
        (
            "value.converter = org.apache.kafka.connect.json.JsonConverter",
            "is 'org.apache.kafka.connect.json.JsonConverter', which is refused: "
            f"{BYTES}; it may be org.apache.kafka.connect.converters.ByteArrayConverter",
        ),
        (
            "topic.filter.class = com.example.Mine",
            f"is 'com.example.Mine', which is refused: {CLASSES}; "
            "it may be org.apache.kafka.connect.mirror.DefaultTopicFilter; "
            "the same rule can be given in Python: lockstep.topic.filter.class=package.module:Class",
        ),
        (
            "B.consumer.interceptor.classes = com.example.Audit",
            "is 'com.example.Audit', which is refused: "
            "an interceptor may change records and Java classes cannot run here: remove it",
        ),
        ("A.bootstrap.servers = a", "has 'a', which is no HOST:PORT"),
        ("A.bootstrap.servers = a:9092,b:x", "has 'b:x', which is no HOST:PORT"),
        ("A.bootstrap.servers =", "is empty: write HOST:PORT, several between commas"),
        ("A.consumer.auto.offset.reset = by_duration:PT1H", "is 'by_duration:PT1H': it takes earliest, latest or none"),
        ("B.producer.compression.type = brotli", "is 'brotli': it takes none, gzip, snappy, lz4 or zstd"),
        ("A.consumer.fetch.min.bytes = lots", "is 'lots', which is no whole number"),
    ],
)
def test_mistake_gives_one_sentence(mistakes_of: MistakesOf, line: str, sentence: str) -> None:
    key = line.partition("=")[0].strip()
    assert mistakes_of(line + "\n", environment=STRICT) == [f"5 {key}: {sentence}"]


def test_half_a_key_and_a_bad_escape_are_named(mistakes_of: MistakesOf) -> None:
    assert mistakes_of("A -> B.enabled = true\ntopics = C:\\user\n", environment=STRICT) == [
        "5 A: is half a key: a key ends at the first blank, = or :, so write a flow as A->B.enabled, without blanks",
        "6 : '\\\\user' is no Unicode escape: write \\uXXXX with hexadecimal digits, or \\\\u for \\u",
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("topics = a, b ,a", "topics: names 'a' more than once: it counts once"),
        ("A->B.groups.exclude = a,", "A->B.groups.exclude: has a comma too many: "),
        ("topics = ,a,,b", "topics: has a comma too many: "),
        ("A.bootstrap.servers = a:1, a:1 ,", "A.bootstrap.servers: names 'a:1' more than once: it counts once; has a"),
        ("clusters = A, B, A,", "clusters: names 'A' more than once: it counts once; has a comma too many: "),
        ("lockstep.on.refused = halt, o=quarantine,", "lockstep.on.refused: has a comma too many: "),
    ],
)
def test_a_list_with_too_much_counts_with_a_remark(load_text: LoadText, line: str, sentence: str) -> None:
    loaded = load_text(line + "\n")
    assert any(f"{note.key}: {note.message}".startswith(sentence) for note in loaded.notes), loaded.notes
    assert list(loaded.clusters) == ["A", "B"]
    assert loaded.flow(A_TO_B).source.bootstrap in ("a:9092", "a:1")


@pytest.mark.parametrize("pattern", ["(", "a{2,1}x", "*", "[a-"])
def test_a_pattern_that_is_no_regular_expression_is_named(mistakes_of: MistakesOf, pattern: str) -> None:
    (mistake,) = mistakes_of(f"A->B.topics = {pattern}\n")
    assert mistake.startswith("5 A->B.topics: ")


def test_the_policy_class_is_one_of_those_that_are_known(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of("replication.policy.class = com.example.Mine\n")
    assert mistake.startswith(
        f"5 replication.policy.class: is 'com.example.Mine', which is refused: {CLASSES}; it may be"
    )
    assert f"if it only leaves the alias out of topics' names, {KEEPS_NAMES} does the same" in mistake


@pytest.mark.parametrize("policy", sorted(KNOWN_TO_KEEP_NAMES))
def test_published_class_that_keeps_names_is_refused_with_its_equivalent(mistakes_of: MistakesOf, policy: str) -> None:
    (mistake,) = mistakes_of(f"A->B.replication.policy.class = {policy}\n")
    assert mistake.startswith(f"5 A->B.replication.policy.class: is '{policy}', which leaves topics their names; ")
    assert mistake.endswith(f"{KEEPS_NAMES} does the same for every topic but heartbeats: write that")


@pytest.mark.parametrize("key", ["offset.storage.topic", "B.offset.storage.topic", "A->B.offsets.storage.topic"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is empty, and progress needs a topic: name one, or remove the line"),
        ("..", "is '..', which no topic may be called"),
        ("pro gress", "is 'pro gress', which no topic may be called: write letters, digits, '.', '_' and '-'"),
        ("x" * 250, f"is {'x' * 250!r}, which no topic may be called: it has 250 characters, and 249 are allowed"),
    ],
)
def test_progress_topic_that_cannot_be_is_a_mistake(mistakes_of: MistakesOf, key: str, value: str, reason: str) -> None:
    (mistake,) = mistakes_of(f"{key} = {value}\n")
    assert mistake.startswith(f"5 {key}: {reason}")


def test_transactions_are_asked_for_by_target_and_end_by_flow(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    plane = load_text("B.exactly.once.source.support = enabled\n").flow(A_TO_B).data_plane
    assert (plane.exactly_once, plane.transaction_interval) == (True, None)
    for preparing in ("disabled", "preparing"):
        text = f"B.exactly.once.source.support = {preparing}\n"
        assert not load_text(text).flow(A_TO_B).data_plane.exactly_once
    (mistake,) = mistakes_of("A->B.transaction.boundary = connector\n")
    assert "poll" in mistake
    assert "interval" in mistake
    interval = "A->B.transaction.boundary = interval\n"
    assert load_text(interval).flow(A_TO_B).data_plane.transaction_interval == timedelta(minutes=1)
    mine = interval + "A->B.transaction.boundary.interval.ms = 250\n"
    assert load_text(mine).flow(A_TO_B).data_plane.transaction_interval == timedelta(milliseconds=250)


@pytest.mark.parametrize(
    ("whole", "sentence"),
    [
        ("", "0 clusters: is missing: list the clusters' aliases, for example clusters = A, B"),
        ("clusters =\n", "1 clusters: is empty: list the clusters' aliases, for example clusters = A, B"),
        (
            "eu.bootstrap.servers=e:1\nus.bootstrap.servers=u:1\n",
            "0 clusters: is missing: list the clusters' aliases, for example clusters = eu, us",
        ),
        ("clusters = A\nA.bootstrap.servers=a:1\n", "1 clusters: names only 'A': a flow needs two clusters"),
        (
            "clusters = A, B\nA.bootstrap.servers=a:1\n",
            "0 B.bootstrap.servers: is missing: say where cluster B is, HOST:PORT, several between commas",
        ),
        ("clusters = A, A\nA.bootstrap.servers=a:1\n", "1 clusters: names only 'A': a flow needs two clusters"),
    ],
)
def test_the_clusters_come_first(mistakes_of: MistakesOf, whole: str, sentence: str) -> None:
    assert mistakes_of(whole=whole) == [sentence]


@pytest.mark.parametrize("alias", ["us.west", "us/west", "us west", "ü", "A->B"])
def test_an_alias_holds_letters_digits_and_two_marks(mistakes_of: MistakesOf, alias: str) -> None:
    mistakes = mistakes_of(whole=f"clusters = A, {alias}\nA.bootstrap.servers=a:1\n")
    assert mistakes == [f"1 clusters: has the alias '{alias}': an alias may hold letters, digits, '_' and '-' only"]


def test_offset_syncs_switched_off_must_not_say_where_they_go(mistakes_of: MistakesOf) -> None:
    assert mistakes_of("emit.offset-syncs.enabled = false\noffset-syncs.topic.location = target\n") == [
        "6 offset-syncs.topic.location: is set, but A->B writes no offset syncs (emit.offset-syncs.enabled=false)"
    ]


def test_mistakes_of_a_file_are_reported_together_in_its_order(mistakes_of: MistakesOf) -> None:
    mistakes = mistakes_of(
        "topcs = x\ntasks.max = 0\nA->Z.enabled = true\nB.security.protocol = SASL_SSL\n"
        "transforms = t\nreplication.policy.separator = /\n",
        environment=STRICT,
    )
    assert [line.partition(": ")[0] for line in mistakes] == [
        "0 B.sasl.mechanism",
        "5 topcs",
        "6 tasks.max",
        "7 A->Z.enabled",
        "9 transforms",
        "10 replication.policy.separator",
    ]


def test_a_line_that_is_wrong_is_not_missing_as_well(mistakes_of: MistakesOf) -> None:
    mistakes = mistakes_of("A.security.protocol=SASL_SSL\nA.sasl.mechanism=PLAIN\nA.sasl.jaas.config=${vault:a:b}\n")
    assert [line.partition(": ")[0] for line in mistakes] == ["7 A.sasl.jaas.config"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing.properties", ": there is no such file: name the configuration file to use"),
        ("", ": is a folder: name the configuration file in it (connectors: cat FOLDER/*.json"),
        ("loop", ": cannot be read: "),
    ],
)
def test_file_that_cannot_be_read_is_named_with_the_cause(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path / name, {})
    assert str(raised.value).startswith(f"{tmp_path / name}{sentence}")


def test_an_unknown_flow_names_those_there_are(load_text: LoadText) -> None:
    loaded = load_text("emit.heartbeats.enabled = false\n")
    with pytest.raises(UnknownFlow, match="runs no flow B->A; the flows it runs: A->B"):
        loaded.flow(Flow("B", "A"))


def test_the_errors_travel_between_processes(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, {})
    assert pickle.loads(pickle.dumps(raised.value)).problems == raised.value.problems  # noqa: S301 our own bytes
    unknown = UnknownFlow("A->B", ["B->A"], tmp_path)
    assert str(pickle.loads(pickle.dumps(unknown))) == str(unknown)  # noqa: S301 our own bytes
