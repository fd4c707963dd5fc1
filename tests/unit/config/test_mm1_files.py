"""MirrorMaker 1's two files and its options, as one flow."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import Configuration, ConfigurationError
from lockstep_config.flow.model import FlowSettings, LegacySettings
from lockstep_config.keys.mm1_keys import FLOW, mm2_topics
from lockstep_config.loader.mm1_files import LegacyFiles, legacy_text, load_legacy
from lockstep_config.text.properties import read_properties
from lockstep_state.names import state_topic

from .conftest import patterns

CONSUMER = "bootstrap.servers=a:9092\ngroup.id=mm1\n"
PRODUCER = "bootstrap.servers=b:9092\n"

PROVIDER = (
    "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
)

# Red Hat AMQ Streams 1.4, 9.5: what to put into both files "to turn off MirrorMaker 2.0 features".
AMQ = """\
replication.policy.class=org.apache.kafka.mirror.LegacyReplicationPolicy
refresh.topics.enabled=false
refresh.groups.enabled=false
emit.checkpoints.enabled=false
emit.heartbeats.enabled=false
sync.topic.configs.enabled=false
sync.topic.acls.enabled=false
"""


class Folder:
    """Both files, and what becomes of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self, consumer: str, producer: str, options: Mapping[str, str]) -> LegacyFiles:
        files = LegacyFiles(self._folder / "consumer.properties", self._folder / "producer.properties", options)
        files.consumer.write_text(consumer)
        files.producer.write_text(producer)
        return files

    def load(self, consumer: str = CONSUMER, producer: str = PRODUCER, **options: str) -> Configuration:
        return load_legacy(self.files(consumer, producer, _dotted(options)), {"PASSWORD": "secret"})

    def flow(self, consumer: str = CONSUMER, producer: str = PRODUCER, **options: str) -> FlowSettings:
        return self.load(consumer, producer, **options).flow(FLOW)

    def mistakes(self, consumer: str = CONSUMER, producer: str = PRODUCER, **options: str) -> list[str]:
        with pytest.raises(ConfigurationError) as raised:
            self.load(consumer, producer, **options)
        return [str(problem).replace(f"{self._folder}/", "") for problem in raised.value.problems]


def _dotted(options: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in options.items()}


@pytest.fixture
def mm1(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_smallest_files_are_one_flow_with_mirrormaker_1s_defaults(mm1: Folder) -> None:
    loaded = mm1.load()
    assert [str(settings.flow) for settings in loaded.flows] == ["source->target"]
    flow = loaded.flow(FLOW)
    assert (flow.source.bootstrap, flow.target.bootstrap) == ("a:9092", "b:9092")
    plane = flow.data_plane
    assert plane.legacy == LegacySettings(group="mm1", commit_every=timedelta(seconds=60))
    assert plane.legacy.abort_on_send_failure
    assert (plane.tasks_max, plane.auto_offset_reset, plane.on_refused.for_topic("t")) == (1, "latest", "halt")
    services = (flow.heartbeat.enabled, flow.checkpoint.enabled, flow.acl_sync.enabled)
    parts = (flow.topic_sync.sync_configs, plane.emit_offset_syncs, flow.topic_sync.heartbeats_replicated)
    assert not any(services + parts)
    assert flow.topic_sync.replication_factor == -1
    assert (loaded.unused, loaded.notes) == ((), ())


@pytest.mark.parametrize(
    ("topic", "copied"),
    [
        ("orders", True),
        ("heartbeats", True),
        ("app-heartbeats", True),
        ("x.internal", True),
        ("orders.replica", True),
        ("__strimzi_store_topic", True),
        ("__consumer_offsets", False),
        ("__transaction_state", False),
        ("mm2-offset-syncs.target.internal", False),
        ("mm2-lockstep-mm1-state.source.internal", False),
    ],
)
def test_mm1_whitelist_star_selects_every_external_topic_and_keeps_names(mm1: Folder, topic: str, copied: bool) -> None:
    flow = mm1.flow(whitelist="*")
    assert flow.replicates(topic) is copied
    assert flow.policy.format_remote_topic("source", topic) == topic


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("*", ".*"),
        ("'*'", ".*"),
        ("orders", "orders"),
        ("orders.*,payments", "orders.*, payments"),
        (' "orders.*, payments" ', "orders.*, payments"),
        ("a,,b,a,", "a, b"),
        ("a|b", "a|b"),
        ("", ""),
        (" ' ' ", ""),
    ],
)
def test_a_list_of_topics_as_mirrormaker_1_reads_it(written: str, means: str) -> None:
    assert mm2_topics(written) == means


def test_include_wins_over_whitelist_and_both_over_the_files(mm1: Folder) -> None:
    assert patterns(mm1.flow(CONSUMER + "topics=c\n").topics).include == ("c",)
    assert patterns(mm1.flow(CONSUMER + "topics=c\n", whitelist="b").topics).include == ("b",)
    loaded = mm1.load(CONSUMER + "topics=c\n", whitelist="b", include="a")
    assert patterns(loaded.flow(FLOW).topics).include == ("a",)
    assert [str(note) for note in loaded.unused] == [
        "lockstep legacy: --whitelist: has no effect: --include counts, as in MirrorMaker"
    ]
    assert patterns(mm1.flow().topics).include == (".*",)


def test_options_are_settings_of_the_flow(mm1: Folder) -> None:
    flow = mm1.flow(num_streams="3", abort_on_send_failure="false", offset_commit_interval_ms="500")
    assert flow.data_plane.tasks_max == 3
    assert flow.data_plane.legacy == LegacySettings(
        group="mm1", abort_on_send_failure=False, commit_every=timedelta(milliseconds=500)
    )
    assert flow.data_plane.on_refused.for_topic("t") == "quarantine"


def test_each_file_is_about_its_cluster(mm1: Folder) -> None:
    flow = mm1.flow(
        CONSUMER + "auto.offset.reset=earliest\nisolation.level=read_committed\nfetch.min.bytes=7\nclient.id=c\n",
        PRODUCER + "compression.type=gzip\nclient.id=p\nacks=1\n",
    )
    plane = flow.data_plane
    assert (plane.auto_offset_reset, plane.isolation_level, plane.fetch.min_bytes) == ("earliest", "read_committed", 7)
    assert plane.compression_type == "gzip"
    assert (flow.clients.source_consumer["client.id"], flow.clients.data_producer["client.id"]) == ("c", "p")


def test_a_secured_source_is_secured_for_every_client_of_it(mm1: Folder) -> None:
    sasl = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=${env:PASSWORD};\n"
    )
    flow = mm1.flow(CONSUMER + PROVIDER + sasl)
    for properties in (flow.clients.source_consumer, flow.clients.source_admin, flow.source.properties):
        assert properties["security.protocol"] == "SASL_PLAINTEXT"
        assert "secret" in properties["sasl.jaas.config"]
    assert flow.target.properties["security.protocol"] == "PLAINTEXT"


def test_the_lines_that_amq_streams_has_people_write(mm1: Folder) -> None:
    flow = mm1.flow(CONSUMER + AMQ, PRODUCER + AMQ)
    assert not flow.topic_sync.refresh_enabled
    assert not flow.checkpoint.refresh_groups
    assert flow.policy.format_remote_topic("source", "orders") == "orders"


def test_mm2s_keys_in_either_file_win_over_the_defaults(mm1: Folder) -> None:
    flow = mm1.flow(
        CONSUMER + "emit.checkpoints.enabled=true\nsync.group.offsets.enabled=true\n",
        PRODUCER + "emit.heartbeats.enabled=true\nlockstep.max.in.flight.bytes=2000000\nreplication.factor=3\n",
    )
    assert flow.checkpoint.enabled
    assert flow.checkpoint.sync_group_offsets
    assert flow.data_plane.emit_offset_syncs, "checkpoints need them"
    assert flow.heartbeat.enabled
    assert flow.data_plane.max_in_flight_bytes == 2_000_000
    assert flow.topic_sync.replication_factor == 3


@pytest.mark.parametrize("of_consumer", [True, False])
def test_transform_is_of_the_flow_in_either_file(mm1: Folder, tmp_path: Path, of_consumer: bool) -> None:
    (tmp_path / "orders.sql").write_text("SELECT value FROM records")
    begin = "lockstep.transform"
    lines = (
        f"{begin}.pii.topics=customers\n{begin}.pii.mask=$.a: mask\n"
        f"{begin}.o.topics=orders\n{begin}.o.sql.file={tmp_path / 'orders.sql'}\n{begin}.threads=3\n"
    )
    files = (CONSUMER + lines, PRODUCER) if of_consumer else (CONSUMER, PRODUCER + lines)
    plane = mm1.flow(*files).data_plane
    assert [(each.name, each.threads) for each in plane.transforms] == [("o", 3), ("pii", 3)]
    assert plane.transforms[0].sql == "SELECT value FROM records"
    wrong = f"{begin}.pii.topics=customers\n{begin}.pii.maks=$.a: mask\n"
    assert "is no key of a transform" in mm1.mistakes(CONSUMER + wrong)[0]


def test_the_same_key_in_both_files_has_to_say_the_same(mm1: Folder) -> None:
    mm1.load(CONSUMER + "tasks.max=2\n", PRODUCER + "tasks.max = 2\n")
    assert mm1.mistakes(CONSUMER + "tasks.max=2\n", PRODUCER + "tasks.max=3\n") == [
        "producer.properties:2: tasks.max: is said otherwise in consumer.properties:3: keep one of them"
    ]


def test_mm1_flows_of_different_groups_have_separate_state(mm1: Folder) -> None:
    mm1_flow, other_group = mm1.flow(), mm1.flow(CONSUMER.replace("mm1", "mm1/b c"))
    named = mm1.flow(name="east")
    topics = {state_topic(f.flow, f.group_id) for f in (mm1_flow, other_group, named)}
    assert len(topics) == 3
    assert "mm2-lockstep-mm1-state.source.internal" in topics
    assert len({f.control.offset_storage_topic for f in (mm1_flow, other_group, named)}) == 3
    for flow in (mm1_flow, other_group, named):
        assert flow.policy.is_internal_topic(flow.control.offset_storage_topic)


@pytest.mark.parametrize(
    ("consumer", "producer", "options", "expected"),
    [
        ("group.id=g\n", PRODUCER, {}, "consumer.properties: bootstrap.servers: is empty: write HOST:PORT"),
        ("bootstrap.servers=a:1\n", PRODUCER, {}, "consumer.properties: group.id: is missing: name the consumer group"),
        ("bootstrap.servers=a:1\ngroup.id=\n", PRODUCER, {}, "consumer.properties:2: group.id: is missing"),
        (CONSUMER, "", {}, "producer.properties: bootstrap.servers: is empty"),
        (CONSUMER + "zookeeper.connect=z:2181\n", PRODUCER, {}, "consumer.properties:3: zookeeper.connect: belongs to"),
        (CONSUMER + "fetch.message.max.bytes=1\n", PRODUCER, {}, "max.partition.fetch.bytes took its place"),
        (CONSUMER + "auto.offset.reset=smallest\n", PRODUCER, {}, "auto.offset.reset: is 'smallest': it takes"),
        (CONSUMER + "isolation.levl=1\n", PRODUCER, {}, "did you mean isolation.level?"),
        (CONSUMER + "interceptor.classes=x.Y\n", PRODUCER, {}, "interceptor.classes: is 'x.Y', which is refused"),
        (CONSUMER + "clusters=A, B\n", PRODUCER, {}, "consumer.properties:3: clusters: has no place here"),
        (
            CONSUMER + "transforms=x\n",
            PRODUCER,
            {},
            "consumer.properties:3: transforms: names 'x', but there is no transforms.x.type",
        ),
        (CONSUMER, PRODUCER + "metadata.broker.list=b:1\n", {}, "write bootstrap.servers"),
        (CONSUMER, PRODUCER + "partitioner.class=x.Y\n", {}, "lockstep.legacy.partitioning"),
        (CONSUMER, PRODUCER, {"num.streams": "many"}, "lockstep legacy: --num.streams: is 'many'"),
        (CONSUMER, PRODUCER, {"num.streams": "0"}, "lockstep legacy: --num.streams: is 0, out of range"),
        (CONSUMER, PRODUCER, {"include": "a("}, "lockstep legacy: --include: regular expression 'a('"),
        (CONSUMER, PRODUCER, {"include": " "}, "lockstep legacy: --include: names no topic"),
        (CONSUMER, PRODUCER, {"abort.on.send.failure": "perhaps"}, "--abort.on.send.failure: is 'perhaps'"),
        (CONSUMER, PRODUCER, {"message.handler": "x.Y"}, "--message.handler: is 'x.Y', which is refused"),
        (CONSUMER, PRODUCER, {"consumer.rebalance.listener": "x.Y"}, "--consumer.rebalance.listener: is 'x.Y'"),
    ],
)
def test_mm1_mistake_is_named_in_mm1_terms(
    mm1: Folder, consumer: str, producer: str, options: dict[str, str], expected: str
) -> None:
    mistakes = mm1.mistakes(consumer, producer, **{name.replace(".", "_"): value for name, value in options.items()})
    assert len(mistakes) == 1, mistakes
    assert expected in mistakes[0]


def test_mm1_mistakes_of_files_and_options_are_reported_together(mm1: Folder) -> None:
    mistakes = mm1.mistakes("zookeeper.connect=z\n", "bootstrap.servers=b\n", num_streams="x")
    assert len(mistakes) == 5, mistakes


@pytest.mark.parametrize("missing", ["consumer", "producer"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, missing: str) -> None:
    files = Folder(tmp_path).files(CONSUMER, PRODUCER, {})
    getattr(files, missing).unlink()
    with pytest.raises(ConfigurationError) as raised:
        load_legacy(files, {})
    assert f"{missing}.properties: there is no such file: name the configuration file to use" in str(raised.value)


def test_mm1_options_without_effect_are_noted_and_it_starts(mm1: Folder) -> None:
    loaded = mm1.load(
        CONSUMER + "key.deserializer=x\npartition.assignment.strategy=y\nenable.auto.commit=false\n",
        PRODUCER
        + "producer.type=sync\npartitioner.class=org.apache.kafka.clients.producer.internals.DefaultPartitioner\n",
    )
    expected = {problem.key for problem in (*loaded.unused, *loaded.notes)}
    assert expected == {
        *("key.deserializer", "partition.assignment.strategy", "enable.auto.commit"),
        *("producer.type", "partitioner.class"),
    }


def test_the_lines_are_those_of_an_mm2_properties_file_that_means_the_same(mm1: Folder, tmp_path: Path) -> None:
    from lockstep_config.loader.configuration import build_configuration

    files = mm1.files(CONSUMER + AMQ, PRODUCER, {"num.streams": "2", "include": "a.*,b"})
    text = "".join(f"{e.key} = {e.value}\n" for e in legacy_text(files).entries)
    path = tmp_path / "mm2.properties"
    again = build_configuration(read_properties(text.encode(), path), path, {})
    assert again.flows == load_legacy(files, {}).flows
