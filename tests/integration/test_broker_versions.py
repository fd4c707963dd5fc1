"""Brokers of other versions, as source and as target (`docs/reference/broker-versions.md`).

Each is a real one from its published jars, started when a test first asks for it and kept for the rest. The pairs run
one after the other, each with all services.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from lockstep_state.codecs.mm2_codec import decode_checkpoint, decode_heartbeat
from tests.support.broker_pairs import WITHIN, Brokers, created_again, numbered_records, until
from tests.support.clusters import (
    Record,
    add_partitions,
    admin,
    commit_offset,
    committed_offset,
    create_topic,
    produce,
    produce_transaction,
    read_topic,
    set_configs,
    unique_name,
)
from tests.support.control import read_so_far
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess
from tests.support.traffic import Traffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
client = cache(admin)
PAIRS = [("4.3", "3.9"), ("3.9", "4.3"), ("4.3", "2.8"), ("2.8", "4.3"), ("2.8", "2.8-too"), ("2.1", "4.3")]

UNKNOWN: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("3.9", "4.3"): {"message.downconversion.enable": "false"},
    ("4.3", "2.8"): {"message.timestamp.after.max.ms": "86400000", "local.retention.ms": "1000"},
    ("2.8", "4.3"): {"message.downconversion.enable": "false"},
}
"""Configs that a source knows and its target does not."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One flow with all its services between brokers of two versions."""

    versions: tuple[str, str]
    mirror: Mirror
    mark: str

    @property
    def flow(self) -> MirroredFlow:
        return self.mirror.flow

    def topic(self, stem: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        return create_topic(
            self.flow.source, unique_name(f"{self.mark}-{stem}"), partitions=partitions, configs=configs
        )


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(stack)


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"{pair[0]}-to-{pair[1]}")
def scene(
    request: pytest.FixtureRequest, brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    source, target = (brokers[kind].bootstrap for kind in request.param)
    mark = f"v{uuid.uuid4().hex[:6]}"
    lines = (
        "heartbeats.replication.enabled = false",
        "checkpoints.topic.replication.factor = 1",
        "sync.topic.configs.interval.seconds = 2",
        "sync.topic.acls.interval.seconds = 2",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
        f"groups = {mark}-.*",
    )
    mirror = Mirror.one_flow(tmp_path_factory.mktemp("versions"), mark, (source, source), (target, target), *lines)
    with ExitStack() as stack:
        stack.enter_context(mirror)
        for module in ("lockstep_checkpoint", "lockstep_heartbeat", "lockstep_acl_sync"):
            stack.enter_context(ServiceProcess(module, mirror.config, str(mirror.flow)))
        yield Scene(request.param, mirror, mark)


def configs_of(bootstrap: str, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    (future,) = client(bootstrap).describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return {e.name: e.value for e in future.result(30).values() if e.source == 1}


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_each_codec(scene: Scene, codec: str) -> None:
    topic = scene.topic(codec, partitions=2)
    produce(scene.flow.source, topic, numbered_records(600, partitions=2), codec=codec, settings={"linger.ms": "50"})
    produce(scene.flow.source, topic, numbered_records(20, 600, 2), codec=codec, settings={"batch.num.messages": "1"})
    produce_transaction(scene.flow.source, topic, numbered_records(40, 700, 2), codec=codec)
    records = scene.flow.wait_copied(topic, within=WITHIN)
    assert len(records) == 660
    rows = scene.flow.wait_written_down(topic, within=WITHIN)
    with_ids = tuple(version != "2.1" for version in scene.versions)
    assert {(bool(row.source_topic_id), bool(row.target_topic_id)) for row in rows.values()} == {with_ids}


@pytest.mark.parametrize("version", ["0.9.0", "0.10.2"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_records_of_formats_that_only_old_brokers_write(scene: Scene, version: str, codec: str) -> None:
    if not scene.versions[0].startswith("2."):
        pytest.skip("no broker since 3.0 writes them")
    topic = scene.topic("old", configs={"message.format.version": version})
    plain = [Record(key=r.key, value=r.value, timestamp_ms=r.timestamp_ms) for r in numbered_records(300)]
    produce(scene.flow.source, topic, plain, codec=codec, settings={"linger.ms": "50"})
    records = scene.flow.wait_copied(topic, within=WITHIN)
    assert [(r.key, r.value) for r in records] == [(r.key, r.value) for r in plain]


def test_killed_slot_loses_and_doubles_nothing(scene: Scene) -> None:
    topic = scene.topic("killed", partitions=3)
    with Traffic(scene.flow.source, topic, partitions=3) as traffic:
        traffic.wait_for_more(500, within=WITHIN)
        scene.flow.wait_for_more(topic, 200, within=WITHIN)
        scene.mirror.copying_worker(within=WITHIN).kill()
        traffic.wait_for_more(500, within=WITHIN)
        scene.flow.wait_for_more(topic, 200, within=WITHIN)
    scene.flow.wait_copied(topic, within=WITHIN)


# -- topics ------------------------------------------------------------------------------------------------------------


def test_configs_that_the_target_does_not_know_fail_alone(scene: Scene) -> None:
    if scene.versions[0] == "2.1":
        pytest.skip("our client changes no configs of a broker before 2.3")
    unknown, known = UNKNOWN.get(scene.versions, {}), {"delete.retention.ms": "1111111", "segment.bytes": "2222222"}
    topic = scene.topic("configs", configs={**known, **unknown})
    scene.flow.wait_mirrored(topic, within=WITHIN)
    remote = scene.flow.remote(topic)
    assert configs_of(scene.flow.target, remote).items() >= known.items()
    assert not configs_of(scene.flow.target, remote).keys() & unknown.keys()
    if unknown:
        refused = scene.flow.wait_event("ConfigRefused", topic, within=WITHIN)
        assert refused.detail["keys"].keys() == unknown.keys()
        assert all(key in why for key, why in refused.detail["keys"].items())

    changed = {"delete.retention.ms": "3333333", "max.message.bytes": "4444444"}
    set_configs(scene.flow.source, topic, changed)
    until(lambda: configs_of(scene.flow.target, remote).items() >= changed.items(), what="configs follow")
    assert len(scene.flow.events("ConfigRefused", topic)) == bool(unknown)  # once, not in each round
    assert scene.flow.events("TopicFailed", topic) == []
    produce(scene.flow.source, topic, numbered_records(50))
    scene.flow.wait_copied(topic, within=WITHIN)


def test_a_config_unknown_to_the_target_that_is_set_later_fails_alone(scene: Scene) -> None:
    if scene.versions[0] == "2.1":
        pytest.skip("our client changes no configs of a broker before 2.3")
    unknown = UNKNOWN.get(scene.versions)
    if unknown is None:
        pytest.skip("the target knows all that the source does")
    topic = scene.topic("later")
    scene.flow.wait_mirrored(topic, within=WITHIN)
    set_configs(scene.flow.source, topic, {**unknown, "delete.retention.ms": "5555555"})
    remote = scene.flow.remote(topic)
    until(lambda: configs_of(scene.flow.target, remote) == {"delete.retention.ms": "5555555"}, what="the known one")
    refused = scene.flow.wait_event("ConfigRefused", topic, within=WITHIN)
    assert refused.detail["keys"].keys() == unknown.keys()


def test_partitions_added_on_each_broker_version_are_copied(scene: Scene) -> None:
    topic = scene.topic("grows")
    produce(scene.flow.source, topic, numbered_records(50))
    scene.flow.wait_copied(topic, within=WITHIN)
    add_partitions(scene.flow.source, topic, 3)
    scene.flow.wait_mirrored(topic, partitions=3, within=WITHIN)
    produce(scene.flow.source, topic, numbered_records(90, 100, 3))
    assert len(scene.flow.wait_copied(topic, within=WITHIN)) == 140


def test_recreated_topic_is_known_by_its_id(scene: Scene) -> None:
    if scene.versions[0] == "2.1":
        pytest.skip("its topics have no ids")
    topic = scene.topic("again")
    produce(scene.flow.source, topic, numbered_records(50))
    scene.flow.wait_copied(topic, within=WITHIN)
    scene.flow.wait_written_down(topic, within=WITHIN)
    created_again(scene.flow.source, topic)
    produce(scene.flow.source, topic, numbered_records(80, 1000))
    gap = scene.flow.wait_event("GapFound", f"{topic}-0", within=WITHIN)
    assert gap.detail["case"] == "source-recreated"
    scene.flow.wait_event("PartitionHalted", f"{topic}-0", within=WITHIN)


# -- the other services ------------------------------------------------------------------------------------------------


def test_groups_are_translated(scene: Scene) -> None:
    topic, group = scene.topic("group"), unique_name(f"{scene.mark}-group")
    produce(scene.flow.source, topic, numbered_records(300))
    scene.flow.wait_copied(topic, within=WITHIN)
    commit_offset(scene.flow.source, group, topic, 0, 300)
    remote = scene.flow.remote(topic)
    until(lambda: committed_offset(scene.flow.target, group, remote, 0) == 300, what="the group's offset")
    written = read_so_far(scene.flow.target, f"{scene.flow.flow.source}.checkpoints.internal")
    checkpoints = [decode_checkpoint(one.key, one.value) for one in written]
    assert (300, 300) in [(c.upstream, c.downstream) for c in checkpoints if (c.group, c.topic) == (group, remote)]


def test_heartbeats_arrive_on_each_broker_version(scene: Scene) -> None:
    ours = (scene.flow.flow.source, scene.flow.flow.target)

    def beating() -> bool:
        beats = [decode_heartbeat(r.key, r.value) for r in read_so_far(scene.flow.target, "heartbeats")]
        return sum((beat.source, beat.target) == ours for beat in beats) >= 3

    until(beating, what="three heartbeats")


def test_reader_of_a_topic_may_read_its_copy(scene: Scene) -> None:
    topic = scene.topic("acl")
    rule = AclBinding(
        *(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:anna", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    for future in client(scene.flow.source).create_acls([rule]).values():
        future.result(30)
    anybody: None = None
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        scene.flow.remote(topic),
        ResourcePatternType.LITERAL,
        anybody,  # type: ignore[arg-type]  # matches everybody, which the annotations forget
        anybody,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )

    def copied() -> bool:
        bindings = client(scene.flow.target).describe_acls(wanted).result(30)
        return [(binding.principal, binding.operation) for binding in bindings] == [("User:anna", AclOperation.READ)]

    until(copied, what="the rule on the remote topic")


# -- transactions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-to-{pair[1]}")
def test_records_and_progress_in_one_transaction(pair: tuple[str, str], brokers: Brokers, tmp_path: Path) -> None:
    source, target = (brokers[kind].bootstrap for kind in pair)
    mark = f"x{uuid.uuid4().hex[:6]}"
    lines = (f"t{mark}.exactly.once.source.support = enabled", f"s{mark}.consumer.isolation.level = read_committed")
    with Mirror.one_flow(tmp_path, mark, (source, source), (target, target), *lines) as mirror:
        flow = mirror.flow
        topic = create_topic(source, f"{mark}-orders", partitions=2)
        produce(source, topic, numbered_records(400, partitions=2), codec="lz4")
        produce_transaction(source, topic, numbered_records(40, 1000, 2), commit=False)
        flow.wait_copied(topic, isolation="read_committed", within=WITHIN)
        with Traffic(source, topic, partitions=2) as traffic:
            traffic.wait_for_more(500, within=WITHIN)
            flow.wait_for_more(topic, 200, within=WITHIN)
            mirror.copying_worker(within=WITHIN).kill()
            traffic.wait_for_more(500, within=WITHIN)
        flow.wait_copied(topic, isolation="read_committed", within=WITHIN)
        rows = flow.wait_written_down(topic, within=WITHIN)
        assert all(row.transactional for row in rows.values())
        last = {r.partition: r.offset for r in read_topic(source, topic, isolation="read_committed")}
        until(lambda: flow.mm2_progress(topic) == last, what="progress in the last transaction")
