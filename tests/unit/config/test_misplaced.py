"""Keys in the wrong place: the remark names the place, or the key to write instead."""

import time

import pytest

from lockstep_config.resolve.client_lines import does_nothing
from lockstep_config.resolve.key_suggestions import KINDS
from lockstep_config.resolve.validate import OF_EVERY_CLIENT

from .conftest import A_TO_B, STRICT, LoadText, MistakesOf, excluded

UNKNOWN = "is no key that MirrorMaker or Lockstep knows; "
OF_PRODUCERS = (
    "it is a property of producers: write TARGET.producer.compression.type or "
    "SOURCE->TARGET.producer.override.compression.type for the mirrored records"
)


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("compression.type", OF_PRODUCERS),
        ("A.fetch.min.bytes", "it is a property of consumers: write SOURCE.consumer.fetch.min.bytes for what is read"),
        (
            "A->B.request.timeout.ms",
            "it is a property of consumers and producers and admins: write SOURCE.consumer.request.timeout.ms for what "
            "is read, or TARGET.producer.request.timeout.ms or SOURCE->TARGET.producer.override.request.timeout.ms for "
            "the mirrored records, or ALIAS.admin.request.timeout.ms for administration",
        ),
        ("A->B.override.compression.type", OF_PRODUCERS),
        ("A->B.producr.override.compression.type", "did you mean A->B.producer.override.compression.type?"),
        ("A->B.sorce.consumer.fetch.min.bytes", "did you mean A->B.source.consumer.fetch.min.bytes?"),
        ("A.consumr.fetch.min.bytes", "did you mean A.consumer.fetch.min.bytes?"),
        ("A->B.target.cluster.security.protocl", "did you mean A->B.target.cluster.security.protocol?"),
        ("A.sync.topic.config.enabled", "did you mean sync.topic.configs.enabled?"),
        ("A->B.topcs", "did you mean A->B.topics?"),
        ("replication.factr", "did you mean replication.factor?"),
        ("A.consumer.fetch.min.byte", "did you mean A.consumer.fetch.min.bytes?"),
        ("A->B.producer.override.compresion.type", "did you mean A->B.producer.override.compression.type?"),
        ("lockstep.control.replication", "did you mean lockstep.control.replication.factor?"),
        ("A->B.enabled.x", "nothing like it is known: remove it"),
        ("zzz.qqq.www", "nothing like it is known: remove it"),
        ("A->B." + "x" * 5000, "nothing like it is known: remove it"),
    ],
)
def test_unknown_key_names_the_intended_key(key: str, instead: str, mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(f"{key} = 1\n", environment=STRICT)
    assert mistake.endswith(f"{key}: {UNKNOWN}{instead}")


def test_very_many_unknown_keys_are_all_named_in_a_short_time(load_text: LoadText) -> None:
    began = time.process_time()
    loaded = load_text("".join(f"A->B.qqq{n}.www = 1\n" for n in range(3000)))
    assert sum("nothing like it" in remark.message for remark in loaded.unused) == 3000
    assert time.process_time() - began < 30.0


class TestTheProducerOfTheFlow:
    """`S->T.producer.x` is for offset syncs; that of the mirrored records is the Connect worker's."""

    @pytest.mark.parametrize("prefix", ["producer", "source.producer", "target.producer"])
    def test_misplaced_key_of_records_only_is_unused(self, prefix: str, load_text: LoadText) -> None:
        loaded = load_text(f"A->B.{prefix}.compression.type = zstd\n")
        assert [(remark.line, remark.message) for remark in loaded.unused] == [
            (
                5,
                "has no effect: MirrorMaker gives it to the producer of offset syncs alone; for the mirrored records "
                "it is A->B.producer.override.compression.type",
            )
        ]
        assert loaded.flow(A_TO_B).data_plane.compression_type is None

    @pytest.mark.parametrize(
        ("name", "cause"),
        [
            ("max.request.size", "the target topic's `max.message.bytes` is the limit"),
            ("delivery.timeout.ms", "a record is tried until it is there"),
        ],
    )
    def test_misplaced_key_that_applies_to_offset_syncs_is_noted(
        self, name: str, cause: str, load_text: LoadText
    ) -> None:
        loaded = load_text(f"A->B.producer.{name} = 2000000\n")
        assert loaded.unused == ()
        assert [note.message for note in loaded.notes] == [
            f"counts for offset syncs only; no such line does anything to the mirrored records: {cause}"
        ]
        assert load_text(f"A.producer.{name} = 2000000\n").notes == (), "there it counts for all that it can count for"

    def test_misplaced_check_ignores_keys_of_any_producer(self, load_text: LoadText) -> None:
        loaded = load_text("A->B.producer.reconnect.backoff.ms = 100\nB.producer.compression.type = zstd\n")
        assert (loaded.unused, loaded.notes) == ((), ())

    @pytest.mark.parametrize("name", sorted(OF_EVERY_CLIENT))
    def test_misplaced_check_ignores_keys_of_any_client(self, name: str, load_text: LoadText) -> None:
        prefixes = ("A.producer", "B.consumer", "A->B.producer")
        loaded = load_text("".join(f"{prefix}.{name} = 20000\n" for prefix in prefixes))
        assert (loaded.unused, loaded.notes) == ((), ())


class TestWithoutEffectAnywhere:
    """Nobody is sent from one line that does nothing to another."""

    @pytest.mark.parametrize(
        ("prefix", "name"),
        [
            ("A->B.producer", "batch.size"),
            ("A->B.source.producer", "acks"),
            ("A.producer", "linger.ms"),
            ("A->B.consumer.override", "max.poll.records"),
            ("A->B.admin.override", "retries"),
            ("consumer", "max.poll.records"),
            ("source.producer", "batch.size"),
            ("source.cluster", "ssl.provider"),
            ("A->B", "ssl.provider"),
        ],
    )
    def test_misplaced_key_has_its_reason_and_no_other_key(self, prefix: str, name: str, load_text: LoadText) -> None:
        loaded = load_text(f"{prefix}.{name} = 1000\n")
        kind = next((kind for kind in KINDS if kind in prefix), "cluster")
        assert [remark.message for remark in loaded.unused] == [f"has no effect: {does_nothing(kind, name)}"]
        assert does_nothing(kind, name)
        assert loaded.notes == ()

    def test_misplaced_key_stated_twice_has_no_winner(self, load_text: LoadText) -> None:
        loaded = load_text("A.consumer.max.poll.records = 5\nA->B.consumer.max.poll.records = 6\n")
        assert [remark.line for remark in loaded.unused] == [5, 6]
        assert loaded.notes == ()


class TestLinesOfNoUse:
    def test_the_clusters_consumer_beats_the_flows(self, load_text: LoadText) -> None:
        loaded = load_text("A.consumer.fetch.min.bytes = 5\nA->B.consumer.fetch.min.bytes = 6\n")
        assert [(note.line, note.message) for note in loaded.notes] == [
            (
                6,
                "does not count for what A->B reads: A.consumer.fetch.min.bytes does, as in MirrorMaker; "
                "A->B.source.consumer.fetch.min.bytes goes above both",
            )
        ]
        assert load_text("A.consumer.fetch.min.bytes = 5\nA->B.consumer.fetch.min.bytes = 5\n").notes == ()

    def test_a_client_of_the_wrong_end(self, load_text: LoadText) -> None:
        loaded = load_text("A.producer.compression.type = zstd\nB.consumer.isolation.level = read_committed\n")
        assert [note.message for note in loaded.notes] == [
            "is for records that are written to A, and no flow that is enabled does so",
            "is for records that are read from B, and no flow that is enabled does so",
        ]
        both = "A.producer.compression.type = zstd\nB.consumer.isolation.level = read_committed\nB->A.enabled = true\n"
        assert load_text(both).notes == ()

    def test_a_list_that_selects_nothing(self, load_text: LoadText) -> None:
        loaded = load_text("topics =\nA->B.groups = a, b\nA->B.groups.exclude = b\n")
        assert [note.message for note in loaded.notes] == [
            "is empty: A->B selects no topic",
            "has b as A->B.groups has: what is excluded stays out",
        ]


class TestFlowsThatDoNotReadEachOthersNames:
    """Settings that must agree between flows: else each fills the other's cluster."""

    def test_cycle_by_another_separator_on_the_way_back_is_refused(self, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of("B->A.enabled = true\nB->A.replication.policy.separator = __\n")
        assert mistake.startswith(
            "6 B->A.replication.policy.separator: leads round: t of A is A.t on B, B__A.t on A, which A->B mirrors "
            "again, and so for ever: give A->B and B->A the same replication.policy.separator"
        )

    def test_cycle_over_three_clusters_is_refused(self, mistakes_of: MistakesOf) -> None:
        text = "clusters = A, B, C\n" + "".join(f"{a}.bootstrap.servers = {a}:1\n" for a in "ABC")
        text += "A->B.enabled = true\nB->C.enabled = true\nC->A.enabled = true\n"
        (mistake,) = mistakes_of(whole=text + "B->C.replication.policy.separator = __\n")
        assert "8 B->C.replication.policy.separator: leads round: " in mistake

    @pytest.mark.parametrize(
        "lines",
        [
            "replication.policy.separator = __\nB->A.enabled = true\n",
            "B->A.replication.policy.separator = __\n",
            "B->A.enabled = true\nB->A.replication.policy.separator = __\nA->B.topics = a.*\nB->A.topics = b.*\n",
            "B->A.enabled = true\n",
        ],
    )
    def test_cycle_check_accepts_equal_or_disjoint_flows(self, lines: str, load_text: LoadText) -> None:
        assert load_text(lines).flows


def test_key_dropped_by_mm2_at_the_top_has_no_effect(load_text: LoadText) -> None:
    loaded = load_text("use.defaults.from = source\n")
    assert [unused.key for unused in loaded.unused] == ["use.defaults.from"]
    configs = excluded(loaded.flow(A_TO_B).config_properties)
    assert configs.use_defaults_from == "target"
    assert load_text("use.defaults.from = nobody\n").unused
