"""The ACL sync service as a process between real clusters (`mm2-behaviour.md` §4.6)."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AclBinding

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import NotPermitted
from lockstep_kafka.topics.control_topics import ControlTopic, ensure_control_topics
from lockstep_state.names import state_topic
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.acls import GUARDS, WITHIN, AclScene, acl, acls_of, add, remove, until
from tests.support.broker import Broker
from tests.support.clusters import Record, produce
from tests.support.metrics import wait_for_all_declared


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> AclScene:
    return AclScene(tmp_path, broker_a, broker_b)


@contextmanager
def broker(alias: str, properties: Mapping[str, str], bindings: Iterable[AclBinding] = ()) -> Iterator[Broker]:
    with Broker(alias, properties=properties) as one:
        if bindings:
            add(one, *bindings)
        yield one


def test_mm2_117_118_reader_of_a_topic_may_read_its_remote_topic(scene: AclScene) -> None:
    topic = scene.topic
    add(
        scene.a,
        acl(topic, "READ"),
        acl(topic, "WRITE", principal="User:writer"),
        acl(topic, "ALL", principal="User:owner"),
        acl(topic, "ALL", "DENY", principal="User:gone"),
        acl(topic, "DESCRIBE_CONFIGS", principal="User:anna"),
        acl(topic, "READ", principal="User:prefix", pattern="PREFIXED"),
        acl(f"other-{topic}x", "READ"),
        acl(topic, "READ", resource="GROUP"),
    )
    add(scene.b, acl(scene.remote(), "READ", principal="User:local"))
    with scene.service() as process:
        row = scene.in_phase("in-sync")
        assert acls_of(scene.b, scene.remote()) == {
            ("ALLOW", "READ", "User:anna"),
            ("ALLOW", "DESCRIBE_CONFIGS", "User:anna"),
            ("ALLOW", "READ", "User:owner"),
            ("DENY", "ALL", "User:gone"),
            ("ALLOW", "READ", "User:local"),
        }
        assert row.copied == 4
        assert row.left_out >= 3  # WRITE, PREFIXED, not mirrored; other tests' topics lie on this cluster as well
        assert len(scene.added()) == 4
        assert acls_of(scene.b, scene.remote(f"other-{topic}x")) == set()
        assert psutil.Process(process.pid).memory_info().rss < 120 * 2**20
        assert process.stop() == 0


def test_existing_acl_is_not_added_again_and_none_is_revoked(scene: AclScene) -> None:
    add(scene.a, acl(scene.topic))
    with scene.service("sync.topic.acls.interval.seconds = 1") as process:
        scene.in_phase("in-sync")
        until(lambda: len(scene.added()) == 1)
        remove(scene.a, acl(scene.topic))
        process.kill()
        process.start()
        until(lambda: (row := scene.row()) and row.copied == 0)
        assert acls_of(scene.b, scene.remote()) == {("ALLOW", "READ", "User:anna")}
        assert len(scene.added()) == 1


def test_a_new_topic_does_not_wait_for_the_interval(scene: AclScene) -> None:
    with scene.service() as process:
        scene.in_phase("in-sync")
        add(scene.a, acl(scene.topic))
        key, value = MirroredTopic(source_topic=scene.topic, target_topic=scene.remote(), partitions=1).encode()
        produce(scene.b.bootstrap, state_topic(scene.flow), [Record(key=key, value=value, partition=0)])
        until(lambda: acls_of(scene.b, scene.remote()) == {("ALLOW", "READ", "User:anna")})
        until(lambda: process.said("acl added", subject=scene.remote()))
        page = wait_for_all_declared(process, "acl-sync", within=WITHIN)
        assert page["lockstep_acls_added_total"] == [({"flow": str(scene.flow)}, 1)]


def test_mm2_119_cluster_without_authorizer_is_logged_once(tmp_path: Path, broker_b: Broker) -> None:
    with broker("bare", {}) as bare:
        scene = AclScene(tmp_path, bare, broker_b)
        add(broker_b, acl(scene.remote(), principal="User:local"))
        with scene.service("sync.topic.acls.interval.seconds = 1") as process:
            row = scene.in_phase("no-authorizer")
            assert row.reason.startswith(f"cluster {scene.flow.source} has no authorizer")
            rounds = f'lockstep_rounds_total{{flow="{scene.flow}",round="ACL sync",service="acl-sync"}}'
            until(lambda: float(process.page("/metrics")[1].partition(rounds)[2].split("\n")[0]) >= 3)
            assert len(process.said("ACLs no-authorizer")) == 1
            assert process.ready()
        assert acls_of(broker_b, scene.remote()) == {("ALLOW", "READ", "User:local")}
        assert scene.added() == []


MINE, OTHER = "mine", "other"


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """A cluster that denies us DESCRIBE and CREATE on itself. We may create the topic MINE, and not OTHER."""
    ours = partial(acl, principal="User:ANONYMOUS")
    cluster = partial(ours, "kafka-cluster", resource="BROKER")
    topics = [ours(MINE, "ALL"), ours(OTHER, "CREATE", "DENY")]
    denied = [cluster("ALL"), cluster("DESCRIBE", "DENY"), cluster("CREATE", "DENY")]
    with broker("strict", GUARDS, [*topics, *denied]) as one:
        admin = Admin("S", {"bootstrap.servers": one.bootstrap})
        until(lambda: not {"DESCRIBE", "CREATE"} & (asyncio.run(admin.cluster_operations()) or set()))
        yield one


def test_a_missing_permission_names_operation_resource_and_cluster(
    tmp_path: Path, strict: Broker, broker_b: Broker
) -> None:
    scene = AclScene(tmp_path, strict, broker_b)
    with scene.service() as process:
        row = scene.in_phase("not-permitted")
        assert row.reason.startswith(f"cluster {scene.flow.source} does not permit DESCRIBE on the cluster")
        assert process.running


async def test_mm2_149_150_missing_permission_is_an_error_only_where_needed(strict: Broker) -> None:
    """CREATE on the cluster is not needed where it is granted on the topic, and neither where the topic is there. Where
    it is needed it is named, rather than passed over."""
    admin = Admin("S", {"bootstrap.servers": strict.bootstrap})
    assert (await ensure_control_topics(admin, [ControlTopic(MINE)])).names == (MINE,)
    assert (await ensure_control_topics(admin, [ControlTopic(MINE)])).names == ()
    with pytest.raises(NotPermitted, match=f"cluster S does not permit to create on topic {OTHER}"):
        await ensure_control_topics(admin, [ControlTopic(MINE), ControlTopic(OTHER)])
