"""topic-sync without a permission, and on a cluster that refuses: what is named, and what goes on."""

import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.acls import GUARDS
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    add_partitions,
    create_topic,
    delete_topic,
    produce,
    read_topic,
    set_configs,
    unique_name,
)
from tests.support.metrics import read_page, values, wait_for_value
from tests.support.mirror import Mirror
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.synced_topics import MARK, client, configs, partitions, row, wait_until


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """Checks permissions, allows what no rule is about, makes topics that somebody asks for, and compacts soon."""
    own = {"auto.create.topics.enable": "true", "log.cleaner.max.compaction.lag.ms": "5000"}
    with Broker("guarded", properties=GUARDS | own) as broker:
        yield broker


GUARDED = Flow(f"g{MARK}", f"u{MARK}")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, guarded: Broker, broker_b: Broker) -> Iterator[ServiceProcess]:
    """From the guarded broker, with MM2's usual ten minutes between comparisons of configs, and more replicas wanted
    than there are brokers."""
    file = two_cluster_file(
        tmp_path_factory.mktemp("usual"),
        (GUARDED.source, guarded.bootstrap),
        (GUARDED.target, broker_b.bootstrap),
        f"{GUARDED}.enabled = true",
        f"{GUARDED}.topics = {MARK}-.*",
        f"{GUARDED}.replication.factor = 3",
        "heartbeats.replication.enabled = false",
    )
    with ServiceProcess("lockstep_topic_sync", file, str(GUARDED)) as process:
        process.hear("leading")
        yield process


def rule(kind: ResourceType, resource: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    """For everybody here, from everywhere."""
    return AclBinding(kind, resource, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission)


def add_rules(broker: Broker, *rules: AclBinding) -> None:
    for future in client(broker.bootstrap).create_acls(list(rules)).values():
        future.result(10)


def deny(broker: Broker, topic: str, operation: AclOperation) -> None:
    """Everything else stays allowed."""
    add_rules(
        broker,
        rule(ResourceType.TOPIC, topic, AclOperation.ALL, AclPermissionType.ALLOW),
        rule(ResourceType.TOPIC, topic, operation, AclPermissionType.DENY),
    )


def allow_again(broker: Broker, topic: str, operation: AclOperation) -> None:
    gone = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermissionType.DENY
    )
    for future in client(broker.bootstrap).delete_acls([gone]).values():
        future.result(10)


@pytest.fixture
def topic() -> str:
    return unique_name(MARK)


def row_that_says(broker: Broker, topic: str, words: str) -> MirroredTopic | None:
    """The topic's row of the guarded flow once these words are in its reason."""
    synced = row(broker, topic, GUARDED)
    return synced if synced is not None and words in synced.reason else None


@pytest.mark.long
def test_a_missing_permission_is_named_with_its_operation_and_resource(
    tmp_path: Path, broker_a: Broker, guarded: Broker
) -> None:
    """On the target everything is allowed save for creating topics."""
    name, mark = unique_name("denied"), uuid.uuid4().hex[:6]
    flow = Flow(f"p{mark}", f"q{mark}")
    lines = (f"{flow}.enabled = true", f"{flow}.topics = {name}", "heartbeats.replication.enabled = false")
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, guarded.bootstrap), *lines)
    remote = f"{flow.source}.{name}"
    with ServiceProcess("lockstep_topic_sync", file, str(flow)) as service:
        service.hear("leading")
        add_rules(
            guarded,
            rule(ResourceType.BROKER, "kafka-cluster", AclOperation.ALL, AclPermissionType.ALLOW),
            rule(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, AclPermissionType.DENY),
            rule(ResourceType.TOPIC, remote, AclOperation.CREATE, AclPermissionType.DENY),
        )
        create_topic(broker_a.bootstrap, name)
        line = service.hear("topic failed", subject=name)
        assert f"cluster {flow.target} does not permit to create on topic {remote}" in line["reason"]
        assert service.ready()


@pytest.mark.long
def test_partitions_not_permitted_are_named_and_begin_when_added(
    tmp_path: Path, broker_a: Broker, guarded: Broker
) -> None:
    mark = uuid.uuid4().hex[:6]
    a, b = (broker_a.bootstrap,) * 2, (guarded.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b, "heartbeats.replication.enabled = false") as mirror:
        flow, topic = mirror.flow, create_topic(broker_a.bootstrap, unique_name(mark), partitions=2)
        remote = flow.remote(topic)

        def write(count: int) -> None:
            stem = uuid.uuid4().hex.encode()
            records = [Record(value=b"%b %d" % (stem, n), partition=n % count) for n in range(100 * count)]
            produce(broker_a.bootstrap, topic, records)

        def in_partitions(numbers: range) -> list[Record]:
            return [record for record in read_topic(broker_a.bootstrap, topic) if record.partition in numbers]

        write(2)
        flow.wait_copied(topic)
        deny(guarded, remote, AclOperation.ALTER)
        add_partitions(broker_a.bootstrap, topic, 5)
        write(5)
        failed = flow.wait_event("TopicFailed", topic)
        assert failed.detail["partitions"] == [2, 3, 4]
        assert f"does not permit to add partitions on topic {remote}" in failed.detail["reason"]
        wait_for_value(mirror.topic_sync, 3, "lockstep_missing_partitions", flow=str(flow))
        wait_for_value(mirror.topic_sync, 1, "lockstep_topics", flow=str(flow), phase="failing")
        flow.wait_holds(topic, in_partitions(range(2)))
        write(5)  # those that are there go on, and take nothing of the others
        flow.wait_holds(topic, in_partitions(range(2)))
        assert partitions(guarded, remote) == 2
        row = flow.mirrored(topic)
        assert row is not None
        assert (row.phase, row.partitions, row.missing) == ("mirrored", 2, 3)

        allow_again(guarded, remote, AclOperation.ALTER)
        assert len(flow.wait_copied(topic)) == 2 * 100 + 2 * 5 * 100
        wait_until(lambda: (row := flow.mirrored(topic)) and (row.reason, row.missing) == ("", 0), within=60)
        page = read_page(mirror.topic_sync.page("/metrics")[1])
        assert values(page, "lockstep_missing_partitions") == [0]
        assert values(page, "lockstep_topics", phase="failing") == [0]
        assert len(flow.events("TopicFailed", topic)) == 1
        assert flow.events("PartitionHalted") == flow.events("GapFound") == []


@pytest.mark.long
def test_config_change_arrives_in_10_s_a_manual_one_at_the_interval(
    usual: ServiceProcess, topic: str, guarded: Broker, broker_b: Broker
) -> None:
    still = f"{topic}-still"
    for name in (topic, still):
        create_topic(guarded.bootstrap, name, partitions=1)
    remote, still_there = f"{GUARDED.source}.{topic}", f"{GUARDED.source}.{still}"
    wait_until(lambda: row(broker_b, topic, GUARDED) and row(broker_b, still, GUARDED))

    def arrives(value: str) -> None:
        set_configs(guarded.bootstrap, topic, {"max.message.bytes": value})
        began = time.monotonic()
        wait_until(lambda: configs(broker_b, remote) == {"max.message.bytes": value})
        assert time.monotonic() - began < 10.0

    arrives("2000000")
    # That round has compared both topics: from now on only the interval does, or a change.
    set_configs(broker_b.bootstrap, still_there, {"delete.retention.ms": "4444444"})
    arrives("3000000")
    wait_until(
        lambda: (r := row(broker_b, topic, GUARDED)) and dict(r.target_configs)["max.message.bytes"] == "3000000"
    )
    assert configs(broker_b, still_there) == {"delete.retention.ms": "4444444"}


def test_replication_factor_above_the_brokers_is_lowered_with_one_warning(
    usual: ServiceProcess, topic: str, guarded: Broker, broker_b: Broker
) -> None:
    create_topic(guarded.bootstrap, topic, partitions=1)
    wait_until(lambda: row(broker_b, topic, GUARDED))
    described = client(broker_b.bootstrap).list_topics(timeout=10).topics[f"{GUARDED.source}.{topic}"]
    assert len(described.partitions[0].replicas) == 1
    (line,) = usual.said("replication factor lowered")
    assert (line["wanted"], line["brokers"], line["level"]) == (3, 1, "warning")


def test_a_config_that_the_target_refuses_fails_that_key_only(
    tmp_path: Path, broker_a: Broker, guarded: Broker
) -> None:
    """Together with a limit of the target's own the value is a contradiction there, and none at the source."""
    name, mark = unique_name("refused"), uuid.uuid4().hex[:6]
    flow = Flow(f"s{mark}", f"t{mark}")
    create_topic(broker_a.bootstrap, name, configs={"min.compaction.lag.ms": "60000", "delete.retention.ms": "1111111"})
    lines = [f"{flow}.enabled = true", f"{flow}.topics = {name}", "sync.topic.configs.interval.seconds = 1"]
    lines.append("heartbeats.replication.enabled = false")
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, guarded.bootstrap), *lines)
    with ServiceProcess("lockstep_topic_sync", file, str(flow)) as service:
        line = service.hear("config refused", subject=name)
        assert line["keys"].keys() == {"min.compaction.lag.ms"}
        remote = f"{flow.source}.{name}"
        wait_until(lambda: partitions(guarded, remote))
        assert configs(guarded, remote) == {"delete.retention.ms": "1111111"}
        set_configs(broker_a.bootstrap, name, {"max.message.bytes": "2000000"})
        wanted = {"delete.retention.ms": "1111111", "max.message.bytes": "2000000"}
        wait_until(lambda: configs(guarded, remote) == wanted)
        assert service.status(str(flow))["configs refused"][name].keys() == line["keys"].keys()
        assert len(service.said("config refused")) == 1


@pytest.mark.long
def test_mm2_120_topic_with_unreadable_configs_is_named_and_stops_no_other(
    usual: ServiceProcess, topic: str, guarded: Broker, broker_b: Broker
) -> None:
    denied = f"{topic}-denied"
    deny(guarded, denied, AclOperation.DESCRIBE_CONFIGS)
    create_topic(guarded.bootstrap, denied, partitions=1)
    create_topic(guarded.bootstrap, topic, partitions=1)
    failed = wait_until(lambda: row(broker_b, denied, GUARDED))
    assert failed.phase == "failed"
    assert f"cluster {GUARDED.source} does not permit to describe configs" in failed.reason
    assert f"topic {denied}" in failed.reason
    wait_until(lambda: (r := row(broker_b, topic, GUARDED)) and r.phase == "mirrored")
    allow_again(guarded, denied, AclOperation.DESCRIBE_CONFIGS)
    wait_until(lambda: (r := row(broker_b, denied, GUARDED)) and (r.phase, r.reason) == ("mirrored", ""))


@pytest.mark.long
def test_mm2_120_topic_unreadable_later_stays_mirrored_with_the_reason(
    usual: ServiceProcess, topic: str, guarded: Broker, broker_b: Broker
) -> None:
    create_topic(guarded.bootstrap, topic, partitions=1)
    wait_until(lambda: row(broker_b, topic, GUARDED))
    for operation, words in (
        (AclOperation.DESCRIBE_CONFIGS, "its configs: "),
        (AclOperation.DESCRIBE, f"cluster {GUARDED.source} does not permit to describe on topic {topic}"),
    ):
        deny(guarded, topic, operation)
        said = wait_until(partial(row_that_says, broker_b, topic, words))
        assert said.phase == "mirrored"
        assert usual.status(str(GUARDED))["failing"][topic] == said.reason
        allow_again(guarded, topic, operation)
        wait_until(lambda: (r := row(broker_b, topic, GUARDED)) and (r.phase, r.reason) == ("mirrored", ""), within=60)
    assert len(usual.said("topic failed", subject=topic)) == 2


@pytest.mark.long
def test_a_deleted_topic_is_not_made_again_by_asking_for_it(
    usual: ServiceProcess, topic: str, guarded: Broker, broker_b: Broker
) -> None:
    """The source is one that makes topics which somebody asks for."""
    create_topic(guarded.bootstrap, topic, partitions=1)
    wait_until(lambda: row(broker_b, topic, GUARDED))
    delete_topic(guarded.bootstrap, topic)
    wait_until(lambda: (r := row(broker_b, topic, GUARDED)) and r.phase == "deleted")
    assert not partitions(guarded, topic)
    assert not usual.said("topic failed", subject=topic)
