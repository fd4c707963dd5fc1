"""A mirror between brokers that grant exactly what `lockstep_config.permissions` lists, and with one of it taken
away."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from lockstep_config import FlowSettings, load
from lockstep_config.permissions import PREFIXED, Grant, grant_command, source_grants, target_grants
from lockstep_protocol.names import Flow
from tests.harness.acls import acl, acls_of, add
from tests.harness.broker import started
from tests.harness.clusters import (
    Record,
    add_partitions,
    commit_offset,
    committed_offset,
    create_topic,
    delete_topic,
    produce,
    read_topic,
    set_configs,
)
from tests.harness.eventually import wait_until
from tests.harness.guarded import USER, GuardedBroker, login, without
from tests.harness.mirror import MirroredFlow
from tests.harness.services import ServiceProcess, two_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WITHIN = 180.0  # seconds; usual is 5, but several test runs may share the cores
SAID = 4
"""Lines in which one service says that one permission is missing, at most: three of many, and a count."""

until = partial(wait_until, within=WITHIN, every=0.2)

SERVICES = ("topic_sync", "heartbeat", "checkpoint", "acl_sync", "data_plane")
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
USUAL: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clusters:
    a: GuardedBroker
    b: GuardedBroker


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    a, b = GuardedBroker("A"), GuardedBroker("B")
    with started(a, b):
        yield Clusters(a, b)


def written(folder: Path, flow: Flow, source: str, target: str, *lines: str) -> Path:
    return two_cluster_file(
        folder,
        (flow.source, source),
        (flow.target, target),
        *login(flow.source),
        *login(flow.target),
        f"{flow}.enabled = true",
        "topics = orders.*",
        "groups = readers.*",
        "tasks.max = 1",
        "sync.group.offsets.enabled = true",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.interval.seconds = 1",
        "sync.topic.acls.interval.seconds = 1",
        "sync.topic.configs.interval.seconds = 1",
        "checkpoints.topic.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        *lines,
    )


def settings_of(file: Path, flow: Flow) -> FlowSettings:
    return load(file, os.environ).flow(flow)


class Scene:
    """All five services of a flow, under a user who has exactly `grants`."""

    def __init__(self, clusters: Clusters, folder: Path, flow: Flow, *lines: str) -> None:
        self.clusters = clusters
        self.flow = MirroredFlow(flow, clusters.a.bootstrap, clusters.b.bootstrap)
        self.file = written(folder, flow, clusters.a.guarded, clusters.b.guarded, *lines)
        self.settings = settings_of(self.file, flow)
        self.services = {name: ServiceProcess(f"lockstep_{name}", self.file, str(flow)) for name in SERVICES}

    @contextmanager
    def granted(self, source: Sequence[Grant], target: Sequence[Grant]) -> Iterator[None]:
        self.clusters.a.grant(source)
        self.clusters.b.grant(target)
        try:
            yield
        finally:
            self.clusters.a.revoke(source)
            self.clusters.b.revoke(target)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            for service in self.services.values():
                stack.enter_context(service)
            for service in self.services.values():
                service.wait_ready(WITHIN)
            yield

    def remote(self, topic: str) -> str:
        return self.settings.policy.format_remote_topic(self.flow.flow.source, topic)

    def poke(self) -> str:
        """Something to do for every service: a new topic, records in it, a group, an ACL. Returns its mark."""
        mark, a = uuid.uuid4().hex[:6], self.clusters.a.bootstrap
        topic = f"orders-{mark}"
        create_topic(a, topic, partitions=1)
        until(partial(led, a, topic), what=f"{topic} has a leader")
        produce(a, topic, [Record(b"k", f"{number}".encode(), partition=0) for number in range(10)])
        commit_offset(a, f"readers-{mark}", topic, 0, 10)
        add(self.clusters.a, acl(topic, principal=f"User:{mark}"))
        return mark

    def done(self, mark: str) -> bool:
        """Whether everything that `poke` gave to do is done."""
        b, remote = self.clusters.b.bootstrap, self.remote(f"orders-{mark}")
        try:
            copied = len(read_topic(b, remote, isolation="read_committed")) == 10
            moved = copied and committed_offset(b, f"readers-{mark}", remote, 0) is not None
        except KafkaException:
            return False  # it is not there yet, or has no leader
        return moved and ("ALLOW", "READ", f"User:{mark}") in acls_of(self.clusters.b, remote)

    def troubles(self) -> list[Any]:
        """What the services say is wrong now."""
        found: list[Any] = []
        for service in self.services.values():
            said = service.status(str(self.flow.flow))
            found += [said["troubles"], said.get("failing"), said.get("left_alone")]
            found += [said["phase"]] if said.get("phase") == "not-permitted" else []
        return [one for one in found if one]

    def lines_with(self, words: str, since: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
        """What each service has logged in which these words stand."""
        return {
            name: [line for line in service.lines()[since[name] :] if words in json.dumps(line)]
            for name, service in self.services.items()
        }

    def logged(self) -> dict[str, int]:
        return {name: len(service.lines()) for name, service in self.services.items()}


def led(bootstrap: str, topic: str) -> bool:
    try:
        read_topic(bootstrap, topic)
    except KafkaException:
        return False
    return True


def ask(file: Path, *words: str) -> str:
    """What the command says; it must be able to."""
    command = [sys.executable, "-m", "lockstep_cli", *words[:1], str(file), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True).stdout


# -- with all of it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(USUAL, id="usual"),
        pytest.param(("offset-syncs.topic.location = target", "sync.topic.acls.enabled = true"), id="syncs on target"),
        pytest.param((IDENTITY, "exactly.once.source.support = enabled"), id="same names, transactions"),
    ],
)
def test_a_mirror_needs_no_more_than_what_is_listed(
    clusters: Clusters, tmp_path: Path, lines: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    number = len(request.node.callspec.id)
    flow = Flow(f"S{number}", f"T{number}")
    scene = Scene(clusters, tmp_path, flow, *lines)
    source, target = source_grants(scene.settings), target_grants(scene.settings)
    if "target" in scene.settings.data_plane.offset_syncs_location:
        assert {grant.operation for grant in source} == {"Read", "Describe", "DescribeConfigs"}
    with scene.granted(source, target), scene.running():
        mark = scene.poke()
        until(lambda: scene.done(mark), what="all is mirrored")
        topic = f"orders-{mark}"
        set_configs(clusters.a.bootstrap, topic, {"retention.ms": "987654321"})
        add_partitions(clusters.a.bootstrap, topic, 3)
        until(lambda: (row := scene.flow.mirrored(topic)) and row.target_partitions == 3)
        until(lambda: read_topic(clusters.b.bootstrap, "heartbeats"))
        on_target = scene.settings.data_plane.offset_syncs_location == "target"
        until(lambda: scene.flow.offset_syncs(topic, on_target=on_target))
        ask(scene.file, "pause")
        ask(scene.file, "resume")
        until(lambda: topic in ask(scene.file, "status", "--topics"), what="status")
        warnings = [line for s in scene.services.values() for line in s.lines() if "permit" in json.dumps(line)]
        assert warnings == []
        assert scene.troubles() == []


# -- with one of it taken away -----------------------------------------------------------------------------------------

FLOW = Flow("A", "B")


def declared() -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    """On the source and on the target, of the usual flow."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of(written(Path(folder), FLOW, "a:1", "b:1"), FLOW)
        return source_grants(settings), target_grants(settings)


SOURCE, TARGET = declared()


def narrowed(grant: Grant) -> Grant:
    """Where the list says every topic or group, as many as this flow has: else one would stand in for another."""
    prefixes = {"topic": "orders", "group": "readers"}
    return replace(grant, name=prefixes[grant.resource], pattern=PREFIXED) if grant.name == "*" else grant


def needed_by_itself(grant: Grant, among: Sequence[Grant]) -> bool:
    return not any(narrowed(grant).comes_with(narrowed(other)) for other in among)


def at_the_start(grant: Grant) -> bool:
    """Only who begins needs it."""
    creates = grant.operation == "Create" and grant.pattern != PREFIXED
    return creates or (grant.operation == "Read" and "-events." in grant.name)


def when_asked(grant: Grant) -> bool:
    """Only a command needs it."""
    return (grant.operation, grant.name.split(".")[0]) in (
        ("Write", "mm2-lockstep-commands"),
        ("Read", "mm2-offsets"),
        ("Read", "heartbeats"),
    )


LINES = [("A", one) for one in SOURCE if needed_by_itself(one, SOURCE)]
LINES += [("B", one) for one in TARGET if needed_by_itself(one, TARGET)]


def named(line: tuple[str, Grant]) -> str:
    alias, grant = line
    return f"{alias} {grant.operation} {grant.resource} {grant.name}"


def those(*, running: bool) -> list[Any]:
    chosen = [one for one in LINES if not when_asked(one[1]) and at_the_start(one[1]) is not running]
    return [pytest.param(*one, id=named(one)) for one in chosen]


@pytest.fixture(scope="module")
def busy(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The usual flow, with something to copy all the time."""
    scene = Scene(clusters, tmp_path_factory.mktemp("least"), FLOW)
    ended = threading.Event()
    with (
        scene.granted([narrowed(one) for one in SOURCE], [narrowed(one) for one in TARGET]),
        scene.running(),
    ):
        create_topic(clusters.a.bootstrap, "orders", partitions=2)
        first = scene.poke()
        until(lambda: scene.done(first), what="the mirror runs")
        writer = threading.Thread(target=keep_busy, args=(clusters.a.bootstrap, ended), daemon=True)
        writer.start()
        try:
            yield scene
        finally:
            ended.set()
            writer.join()


def keep_busy(bootstrap: str, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(0.3):
        number += 2
        produce(bootstrap, "orders", [Record(b"k", b"v", partition=at) for at in (0, 1)])
        commit_offset(bootstrap, "readers", "orders", 0, number // 2)


@pytest.mark.parametrize(("alias", "grant"), those(running=True))
def test_what_is_taken_away_is_named_in_a_few_lines_and_all_recovers_once_it_is_granted(
    busy: Scene, alias: str, grant: Grant
) -> None:
    broker = busy.clusters.a if alias == "A" else busy.clusters.b
    wanted = grant_command(grant, f"User:{USER}", broker.guarded)
    before = busy.logged()
    grows = busy.poke()  # what has been mirrored when the permission goes
    until(lambda: busy.done(grows), what="what was there before is mirrored")
    with without(broker, narrowed(grant)):
        mark = busy.poke()
        set_configs(busy.clusters.a.bootstrap, f"orders-{grows}", {"retention.ms": "876543210"})
        add_partitions(busy.clusters.a.bootstrap, f"orders-{grows}", 2)

        def said() -> bool:
            return any(busy.lines_with(wanted, before).values())

        until(said, what=f"{wanted} is said")
    until(lambda: busy.done(mark), what="what came meanwhile is mirrored")
    until(lambda: not busy.troubles(), what="nothing is wrong any more")
    for service, lines in busy.lines_with(wanted, before).items():
        assert len(lines) <= SAID, (service, [line.get("message") for line in lines])
    text = next(json.dumps(line) for lines in busy.lines_with(wanted, before).values() for line in lines)
    assert f"cluster {alias} does not permit" in text
    assert f"User:{USER} lacks {grant.operation} on " in text
    assert grant.feature in text


def test_a_command_without_its_permission_says_so(busy: Scene) -> None:
    broker = busy.clusters.b
    for grant, words in (
        (next(one for one in TARGET if when_asked(one) and one.operation == "Write"), ("pause",)),
        (next(one for one in TARGET if when_asked(one) and one.operation == "Read"), ("offsets", "list")),
    ):
        with without(broker, grant):
            said = subprocess.run(
                [sys.executable, "-m", "lockstep_cli", *words, str(busy.file)],
                capture_output=True,
                text=True,
                timeout=WITHIN,
            )
            assert said.returncode != 0
            assert grant_command(grant, f"User:{USER}", broker.guarded) in said.stdout + said.stderr


@pytest.mark.parametrize(("alias", "grant"), those(running=False))
def test_what_is_missing_at_the_start_is_named_and_waited_for(
    clusters: Clusters, tmp_path: Path, alias: str, grant: Grant
) -> None:
    flow = Flow(f"C{uuid.uuid4().hex[:6]}", f"D{uuid.uuid4().hex[:6]}")
    scene = Scene(clusters, tmp_path, flow)
    source, target = source_grants(scene.settings), target_grants(scene.settings)
    its = [source, target][alias == "B"]
    (missing,) = (one for one, other in zip(its, [SOURCE, TARGET][alias == "B"], strict=True) if other == grant)
    broker = clusters.a if alias == "A" else clusters.b
    wanted = grant_command(missing, f"User:{USER}", broker.guarded)
    who = next(
        (name for part, name in (("mm2-offsets", "data_plane"), ("offset-syncs", "checkpoint")) if part in grant.name),
        "heartbeat",
    )
    with (
        scene.granted(source, target),
        without(broker, missing),
        ExitStack() as stack,
    ):
        if grant.name == "heartbeats":  # which all flows share
            delete_topic(broker.bootstrap, grant.name)
        service = stack.enter_context(ServiceProcess(f"lockstep_{who}", scene.file, str(flow)))
        until(lambda: wanted in service.text(), what=f"{wanted} is said")
        broker.grant([missing])
        until(lambda: service.ready() and service.status(str(flow))["acting"], what="it leads")
        until(lambda: not service.status(str(flow))["degraded"], what="nothing is wrong any more")
        assert len([line for line in service.lines() if wanted in json.dumps(line)]) <= SAID
