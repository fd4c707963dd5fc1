"""topic-sync as a process against two real clusters (`mm2-behaviour.md` §4.2, §4.3, §4.5; `architecture.md` §4).

One service runs for the whole file, with aliases of its own; tests keep apart by topic names.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lockstep_state.events import Event, decode_event
from lockstep_state.names import events_topic, state_topic
from tests.support.broker import Broker
from tests.support.clusters import add_partitions, create_topic, delete_topic, read_topic, set_configs, unique_name
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.synced_topics import FLOW, FORCING, MARK, SOURCE, TARGET, configs, partitions, row, wait_until

SEEN_WITHIN = 60.0  # much less than the 600 s between two scans; usual is less than 5


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker) -> Path:
    return two_cluster_file(
        tmp_path_factory.mktemp("topic-sync"),
        (SOURCE, broker_a.bootstrap),
        (TARGET, broker_b.bootstrap),
        f"clusters = {SOURCE}, {FORCING.source}, {TARGET}",
        f"{FORCING.source}.bootstrap.servers = {broker_a.bootstrap}",
        f"{FLOW}.enabled = true",
        f"{FLOW}.topics = {MARK}-.*",
        f"{FLOW}.topics.exclude = .*-unwanted",
        f"{FORCING}.enabled = true",
        f"{FORCING}.topics = forced-{MARK}-.*",
        f"{FORCING}.use.defaults.from = source",
        "sync.topic.configs.interval.seconds = 2",
    )


@pytest.fixture(scope="module")
def service(file: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess("lockstep_topic_sync", file, str(FLOW), str(FORCING)) as process:
        process.hear("leading", flow=str(FLOW))
        yield process


@pytest.fixture
def topic() -> str:
    return unique_name(MARK)


def events(broker: Broker, topic: str, kind: str) -> list[Event]:
    decoded = [decode_event(r.value or b"") for r in read_topic(broker.bootstrap, events_topic(FLOW))]
    return [event for event in decoded if (event.subject, event.kind) == (topic, kind)]


def test_a_new_topic_is_mirrored_within_five_seconds(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    create_topic(
        broker_a.bootstrap, topic, partitions=3, configs={"delete.retention.ms": "7777777", "min.insync.replicas": "1"}
    )
    began = time.monotonic()
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}") == 3)
    assert time.monotonic() - began < SEEN_WITHIN
    assert configs(broker_b, f"{SOURCE}.{topic}") == {"delete.retention.ms": "7777777"}

    mirrored = wait_until(lambda: row(broker_b, topic))
    assert (mirrored.phase, mirrored.partitions, mirrored.target_partitions) == ("mirrored", 3, 3)
    assert mirrored.target_topic == f"{SOURCE}.{topic}"
    assert mirrored.source_topic_id
    assert mirrored.target_topic_id
    assert mirrored.source_topic_id != mirrored.target_topic_id
    assert dict(mirrored.target_configs) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "delete.retention.ms": "7777777",
        "max.message.bytes": "1048588",
        "min.insync.replicas": "1",
        "message.timestamp.type": "CreateTime",
    }
    assert mirrored.term > 0
    (created,) = wait_until(lambda: events(broker_b, topic, "TopicCreated"))
    assert created.detail["partitions"] == 3
    (line,) = service.said("topic created", subject=topic)
    assert line["text"] == f"{topic} -> {SOURCE}.{topic} (3 partitions)"
    assert line["flow"] == str(FLOW)


def test_excluded_internal_and_own_topics_are_not_mirrored(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    left = [f"{topic}-unwanted", f"{TARGET}.{topic}", f"mm2-lockstep-{topic}", f"other-{topic}"]
    for name in left:
        create_topic(broker_a.bootstrap, name, partitions=1)
    create_topic(broker_a.bootstrap, topic, partitions=1)
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}"))
    assert not [name for name in left if partitions(broker_b, f"{SOURCE}.{name}")]


def test_partitions_are_added_while_it_runs(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    create_topic(broker_a.bootstrap, topic, partitions=2)
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}") == 2)
    add_partitions(broker_a.bootstrap, topic, 5)
    began = time.monotonic()
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}") == 5)
    assert time.monotonic() - began < SEEN_WITHIN
    wait_until(lambda: (r := row(broker_b, topic)) and r.partitions == 5 and r.target_partitions == 5)
    (added,) = wait_until(lambda: events(broker_b, topic, "PartitionsAdded"))
    assert (added.detail["before"], added.detail["total"]) == (2, 5)


def test_a_remote_topic_with_more_partitions_keeps_them(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    create_topic(broker_b.bootstrap, f"{SOURCE}.{topic}", partitions=4)
    create_topic(broker_a.bootstrap, topic, partitions=2)
    mirrored = wait_until(lambda: row(broker_b, topic))
    assert (mirrored.phase, mirrored.partitions, mirrored.target_partitions) == ("mirrored", 2, 4)
    assert events(broker_b, topic, "TopicCreated") == []


def test_mm2_174_176_configs_follow_the_source_and_changes_are_reverted(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    remote = f"{SOURCE}.{topic}"
    create_topic(broker_a.bootstrap, topic, partitions=1, configs={"delete.retention.ms": "1111111"})
    wait_until(
        lambda: (
            configs(broker_b, remote) == {"delete.retention.ms": "1111111"} if partitions(broker_b, remote) else None
        )
    )

    set_configs(broker_a.bootstrap, topic, {"max.message.bytes": "2000000"})
    set_configs(broker_a.bootstrap, topic, {"delete.retention.ms": None})
    set_configs(
        broker_b.bootstrap, remote, {"min.insync.replicas": "1"}
    )  # excluded by default: left alone on the target

    def followed() -> bool:
        assert configs(broker_b, remote) == {"max.message.bytes": "2000000", "min.insync.replicas": "1"}
        return True

    wait_until(followed)
    wait_until(lambda: (r := row(broker_b, topic)) and dict(r.target_configs)["max.message.bytes"] == "2000000")

    set_configs(broker_b.bootstrap, remote, {"max.message.bytes": "3000000"})
    wait_until(lambda: configs(broker_b, remote)["max.message.bytes"] == "2000000")
    altered = events(broker_b, topic, "ConfigAltered")
    assert {"max.message.bytes": "2000000", "delete.retention.ms": None} in [
        event.detail["changes"] for event in altered
    ]


def test_mm2_175_defaults_of_the_source_are_forced_on_the_target(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    name, key, default = f"forced-{topic}", "delete.retention.ms", "86400000"
    create_topic(broker_b.bootstrap, remote := f"{FORCING.source}.{name}", configs={key: "1111111"})
    create_topic(broker_a.bootstrap, name)
    wait_until(lambda: configs(broker_b, remote)[key] == default)
    assert key not in configs(broker_a, name), "what holds there is the cluster's default"
    assert "min.insync.replicas" not in configs(broker_b, remote), "it is excluded"


@pytest.mark.long
def test_topic_sync_writes_nothing_while_nothing_changes(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    create_topic(broker_a.bootstrap, topic, partitions=1)
    wait_until(lambda: row(broker_b, topic))
    rounds = 3  # of configs, each of which is followed by a close look at the topics

    def count() -> int:
        return sum(
            (r.key or b"").startswith(f"topic/{topic}".encode())
            for r in read_topic(broker_b.bootstrap, state_topic(FLOW))
        )

    written, began = count(), time.monotonic()
    wait_until(lambda: time.monotonic() - began > rounds * 2.0 + 1.0, within=60)
    assert count() == written


def test_topic_deleted_and_created_again_has_events(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    create_topic(broker_a.bootstrap, topic, partitions=1)
    first = wait_until(lambda: row(broker_b, topic))
    delete_topic(broker_a.bootstrap, topic)
    wait_until(lambda: (r := row(broker_b, topic)) and r.phase == "deleted")
    assert partitions(broker_b, f"{SOURCE}.{topic}") == 1
    create_topic(broker_a.bootstrap, topic, partitions=1)
    again = wait_until(lambda: (r := row(broker_b, topic)) and r.phase == "mirrored" and r)
    assert again.source_topic_id != first.source_topic_id
    assert again.target_topic_id == first.target_topic_id
    assert wait_until(lambda: events(broker_b, topic, "TopicDeleted"))
    (recreated,) = wait_until(lambda: events(broker_b, topic, "TopicRecreated"))
    assert recreated.detail == {"side": "source", "before": first.source_topic_id, "after": again.source_topic_id}


def test_a_topic_the_target_refuses_stops_no_other(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    # The remote name is longer than Kafka allows (249), the source's is not.
    refused = f"{topic}-".ljust(245, "x")
    create_topic(broker_a.bootstrap, refused, partitions=1)
    create_topic(broker_a.bootstrap, topic, partitions=1)
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}"))
    failed = wait_until(lambda: row(broker_b, refused))
    assert failed.phase == "failed"
    assert "249" in failed.reason
    assert len(wait_until(lambda: events(broker_b, refused, "TopicFailed"))) == 1
    assert service.status(str(FLOW))["failing"][refused] == failed.reason


def test_topic_sync_continues_after_kill_9(
    service: ServiceProcess, topic: str, broker_a: Broker, broker_b: Broker
) -> None:
    before = len(read_topic(broker_b.bootstrap, events_topic(FLOW)))
    service.kill()
    create_topic(broker_a.bootstrap, topic, partitions=2)
    service.start()
    wait_until(lambda: partitions(broker_b, f"{SOURCE}.{topic}") == 2, within=60)
    wait_until(lambda: row(broker_b, topic))
    new = read_topic(broker_b.bootstrap, events_topic(FLOW))[before:]
    assert [decode_event(r.value or b"").subject for r in new] == [topic]  # nothing old was done or said again


def test_topic_sync_stays_small(service: ServiceProcess) -> None:
    service.hear("leading")
    assert psutil.Process(service.pid).memory_info().rss < 120 * 2**20


@pytest.mark.long
def test_a_source_that_is_away_is_named_and_mirrored_once_it_comes(tmp_path: Path, broker_b: Broker) -> None:
    name, mark = unique_name("late"), uuid.uuid4().hex[:6]
    flow = f"l{mark}->t{mark}"
    late = Broker("late")
    try:
        lines = (f"{flow}.enabled = true", f"{flow}.topics = {name}")
        clusters = (f"l{mark}", late.bootstrap), (f"t{mark}", broker_b.bootstrap)
        file = two_cluster_file(tmp_path, *clusters, *lines)
        with ServiceProcess("lockstep_topic_sync", file, flow) as service:
            line = service.hear("cluster unreachable")
            assert late.bootstrap in line["text"]
            assert service.ready()  # the target has been read
            assert service.status(flow)["degraded"]
            late.start()
            create_topic(late.bootstrap, name)
            wait_until(lambda: partitions(broker_b, f"l{mark}.{name}"), within=60)
            service.hear("cluster reachable again")
            assert service.has_said_each_cause_once()
            assert not service.status(flow)["degraded"]
            assert service.stop() == 0
    finally:
        late.close()
