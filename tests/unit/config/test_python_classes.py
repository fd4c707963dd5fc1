"""Python classes in the place of Java's filters and replication policies."""

import pickle
import sys
from pathlib import Path

import pytest

from lockstep_config.keys.python_classes import ClassFailed, PythonTopics
from lockstep_rules.policy import is_cycle, keeps_names
from lockstep_state.names import Flow

from .conftest import A_TO_B, STRICT, LoadText, MistakesOf, ab

RULES = "lockstep_own_rules"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As if the folder were on PYTHONPATH; nothing of it is left behind."""
    folder = tmp_path_factory.mktemp("own")
    text = (Path(__file__).parent / "own_rules.py").read_text(encoding="utf-8")
    (folder / f"{RULES}.py").write_text(text, encoding="utf-8")
    (folder / "lockstep_broken.py").write_text("import sys\nsys.exit('not today')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    for name in (RULES, "lockstep_broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)


class TestWhatTheyDecide:
    def test_a_filter_of_topics(self, load_text: LoadText) -> None:
        settings = ab(load_text, f"A->B.lockstep.topic.filter.class = {RULES}:Regional\ntopics = ignored\n")
        assert settings.replicates("eu-orders")
        assert not settings.replicates("us-orders")
        assert not settings.replicates("ignored")

    def test_python_filter_cannot_select_internal_topics_or_cycles(self, load_text: LoadText) -> None:
        text = f"lockstep.topic.filter.class = {RULES}:Regional\nexample.regions = B.,mm2,eu\n"
        settings = ab(load_text, text)
        for name in ("B.eu-orders", "mm2-offset-syncs.B.internal", "mm2-lockstep-state.A.internal"):
            assert not settings.replicates(name), name
        assert settings.replicates("eu-orders")

    def test_a_filter_of_groups_and_one_of_configs(self, load_text: LoadText) -> None:
        text = f"lockstep.group.filter.class={RULES}:NoGroups\n"
        text += f"lockstep.config.property.filter.class={RULES}:OnlyRetention\n"
        settings = ab(load_text, text)
        assert not settings.groups.matches("billing")
        assert settings.config_properties.should_replicate_config_property("retention.ms")
        assert not settings.config_properties.should_replicate_config_property("segment.ms")
        assert not settings.config_properties.should_replicate_source_default("retention.ms")

    def test_a_policy_answers_everything_and_inherits_what_it_does_not_say(self, load_text: LoadText) -> None:
        settings = ab(load_text, f"lockstep.replication.policy.class = {RULES}:Suffixed\n")
        policy = settings.policy
        assert policy.format_remote_topic("A", "orders") == "orders--A"
        assert (policy.topic_source("orders--A--B"), policy.upstream_topic("orders--A--B")) == ("B", "orders--A")
        assert policy.original_topic("orders--A--B") == "orders"
        assert policy.is_heartbeats_topic("heartbeats--A")
        assert policy.checkpoints_topic("A") == "A.checkpoints.internal"
        assert policy.is_internal_topic("__consumer_offsets")
        assert settings.offset_syncs_topic == "mm2-offset-syncs.B.internal"
        assert is_cycle(policy, "orders--B", A_TO_B)
        assert is_cycle(policy, "orders--B--C", A_TO_B)
        assert not is_cycle(policy, "orders--C", A_TO_B)
        assert not settings.replicates("orders--B")
        assert not keeps_names(policy)

    def test_python_policy_derived_from_mm2_has_the_separator_of_the_file(self, load_text: LoadText) -> None:
        text = f"lockstep.replication.policy.class = {RULES}:ShortInternal\nreplication.policy.separator = __\n"
        policy = ab(load_text, text).policy
        assert (policy.checkpoints_topic("A"), policy.format_remote_topic("A", "t")) == ("cp__A", "A__t")
        assert policy.offset_syncs_topic("B") == "mm2-offset-syncs__B__internal"

    def test_python_policy_that_keeps_names_has_local_provenance(self, load_text: LoadText) -> None:
        text = f"lockstep.replication.policy.class = {RULES}:Keeping\nB->A.enabled = true\n"
        assert ab(load_text, text).data_plane.provenance == "local"
        assert ab(load_text, text.replace("Keeping", "Suffixed")).data_plane.provenance is None

    def test_python_policy_that_does_not_know_its_own_names_is_noted(self, load_text: LoadText) -> None:
        loaded = load_text(f"A->B.lockstep.replication.policy.class = {RULES}:Forgetful\n")
        assert [note.message for note in loaded.notes] == [
            "calls t of A t--A, and does not know that t--A came from A (topic_source). A topic that comes back "
            "through other flows is not recognised"
        ]

    def test_a_flow_that_has_heartbeats_only_makes_no_filter(self, load_text: LoadText) -> None:
        loaded = load_text(f"lockstep.topic.filter.class = {RULES}:NeedsTopics\nA->B.topics = x\n")
        assert loaded.flow(A_TO_B).replicates("x1")

    def test_each_flow_has_its_own(self, load_text: LoadText) -> None:
        loaded = load_text(f"B->A.enabled = true\nB->A.lockstep.topic.filter.class = {RULES}:Regional\n")
        assert loaded.flow(A_TO_B).replicates("us-orders")
        assert not loaded.flow(Flow("B", "A")).replicates("us-orders")


class TestProperties:
    def test_the_class_gets_all_of_its_connectors(self, load_text: LoadText) -> None:
        settings = ab(
            load_text,
            f"""
            topics = a.*
            A->B.lockstep.topic.filter.class = {RULES}:Regional
            A->B.tasks.max = 3
            A->B.example.regions = us
            A.consumer.client.id = me
            unknown.to.others = no
            """.replace("unknown.to.others = no", ""),
        )
        topics = settings.topics
        assert isinstance(topics, PythonTopics)
        properties = topics.made.properties
        assert properties["topics"] == "a.*"
        assert (properties["tasks.max"], properties["example.regions"]) == ("3", "us")
        assert properties["source.consumer.client.id"] == "me"
        assert (properties["source.cluster.alias"], properties["target.cluster.alias"]) == ("A", "B")
        assert properties["target.cluster.bootstrap.servers"] == "b:9092"
        assert settings.replicates("us-orders")

    def test_python_class_knows_only_the_keys_that_it_names(self, mistakes_of: MistakesOf) -> None:
        text = f"A->B.lockstep.topic.filter.class = {RULES}:Regional\nA->B.example.region = us\n"
        (mistake,) = mistakes_of(text)
        assert mistake.startswith("6 A->B.example.region: is no key that MirrorMaker or Lockstep knows; did you mean")
        assert mistakes_of("A->B.example.regions = us\n", environment=STRICT)

    def test_settings_travel_and_are_equal(self, load_text: LoadText) -> None:
        text = f"lockstep.topic.filter.class = {RULES}:Regional\nexample.regions = eu\n"
        text += f"lockstep.replication.policy.class={RULES}:Suffixed\n"
        settings = ab(load_text, text)
        arrived = pickle.loads(pickle.dumps(settings))  # noqa: S301 - the bytes are ours
        assert arrived == settings == ab(load_text, text)
        assert arrived.replicates("eu-1")
        assert arrived.policy.format_remote_topic("A", "t") == "t--A"
        assert "example.regions" not in repr(settings.topics)


class TestMistakes:
    @pytest.mark.parametrize(
        ("key", "value", "sentence"),
        [
            ("topic.filter", "Regional", "is 'Regional', which names no Python class: write package.module:Class"),
            ("topic.filter", "a b:C", "is 'a b:C', which names no Python class: write package.module:Class"),
            (
                "topic.filter",
                "nowhere_at_all.rules:C",
                "names the module nowhere_at_all.rules, which is not there: install its package wherever services and "
                "Spark's executors run, or put its folder on PYTHONPATH",
            ),
            (
                "topic.filter",
                "lockstep_broken:C",
                "names the module lockstep_broken, which cannot be imported: SystemExit: not today",
            ),
            (
                "topic.filter",
                f"{RULES}:Regionl",
                f"names Regionl, which the module {RULES} does not have: did you mean {RULES}:Regional?",
            ),
            ("topic.filter", f"{RULES}:NOT_A_CLASS", f"names NOT_A_CLASS of {RULES}, which is no class"),
            ("group.filter", f"{RULES}:Regional", f"is '{RULES}:Regional', which has no should_replicate_group"),
            ("topic.filter", f"{RULES}:Refuses", f"is '{RULES}:Refuses', which has no should_replicate_topic"),
            (
                "replication.policy",
                f"{RULES}:Unfinished",
                f"is of no use: {RULES}:Unfinished: raised TypeError: Can't instantiate abstract class Unfinished",
            ),
            (
                "replication.policy",
                f"{RULES}:Half",
                f"is '{RULES}:Half', which has no topic_source and no upstream_topic and no original_topic",
            ),
            (
                "topic.filter",
                f"{RULES}:Silent",
                f"{RULES}:Silent: should_replicate_topic('t') answered None; it must be True or False",
            ),
        ],
    )
    def test_python_class_mistake_has_its_line(
        self, mistakes_of: MistakesOf, key: str, value: str, sentence: str
    ) -> None:
        (mistake,) = mistakes_of(f"lockstep.{key}.class = {value}\n")
        assert mistake.startswith(f"5 lockstep.{key}.class: {sentence}")

    def test_python_class_error_shows_no_secret(self, mistakes_of: MistakesOf) -> None:
        text = f"A.ssl.key.password = hunter2\nA->B.lockstep.topic.filter.class = {RULES}:Recording\n"
        (mistake,) = mistakes_of(text)
        assert "ValueError: cannot log in with ********" in mistake

    def test_python_class_that_fails_later_has_its_place_in_the_file(self, load_text: LoadText, tmp_path: Path) -> None:
        settings = ab(load_text, f"lockstep.topic.filter.class = {RULES}:Later\n")
        place = f"{tmp_path / 'mm2.properties'}:5: lockstep.topic.filter.class: {RULES}:Later: "
        with pytest.raises(ClassFailed) as raised:
            settings.replicates("orders")
        assert str(raised.value) == f"{place}should_replicate_topic('orders') raised KeyError: 'orders'"
        with pytest.raises(ClassFailed) as raised:
            settings.replicates("odd")
        assert str(raised.value) == f"{place}should_replicate_topic('odd') answered None; it must be True or False"


class TestInThePlaceOfJava:
    @pytest.mark.parametrize("scope", ["", "A->B."])
    def test_the_java_class_of_the_same_key_is_accepted(self, load_text: LoadText, scope: str) -> None:
        loaded = load_text(
            f"{scope}topic.filter.class = com.example.Regional\n"
            f"{scope}lockstep.topic.filter.class = {RULES}:Regional\n"
            "B->A.emit.heartbeats.enabled = false\n"
        )
        assert not loaded.flow(A_TO_B).replicates("us-1")

    def test_python_class_of_one_flow_does_not_replace_that_of_another(self, mistakes_of: MistakesOf) -> None:
        mistakes = mistakes_of(
            "topic.filter.class = com.example.Regional\nB->A.enabled = true\n"
            f"A->B.lockstep.topic.filter.class = {RULES}:Regional\n"
        )
        assert len(mistakes) == 1
        assert mistakes[0].startswith("5 topic.filter.class: is 'com.example.Regional', which is refused")

    @pytest.mark.parametrize(
        "key", ["replication.policy.class", "topic.filter.class", "group.filter.class", "config.property.filter.class"]
    )
    def test_java_class_is_refused_with_the_python_alternative(self, mistakes_of: MistakesOf, key: str) -> None:
        (mistake,) = mistakes_of(f"A->B.{key} = com.example.Mine\n")
        assert f"the same rule can be given in Python: lockstep.{key}=package.module:Class" in mistake
