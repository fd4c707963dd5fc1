"""A mirror between brokers that grant exactly what `lockstep_config.credentials.permissions` lists, and with one of it
taken away.

One mirror of all five services runs for the whole file: what is taken from it is given back.
"""

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from confluent_kafka import KafkaException

from lockstep_config import FlowSettings, load
from lockstep_config.credentials.permissions import EVERY, PREFIXED, Grant, grant_command, source_grants, target_grants
from lockstep_protocol.names import Flow
from tests.conftest import GuardedPair
from tests.support.acls import acl, acls_of, add
from tests.support.clusters import (
    Record,
    add_partitions,
    admin,
    commit_offset,
    committed_offset,
    create_topic,
    delete_topic,
    end_offsets,
    produce,
    read_topic,
    set_configs,
)
from tests.support.eventually import wait_until
from tests.support.guarded import USERS, GuardedBroker, login, without
from tests.support.mirror import MirroredFlow
from tests.support.services import ServiceProcess, two_cluster_file

pytestmark = pytest.mark.timeout(900)

WITHIN = 180.0  # seconds; usual is 5, but several test runs may share the cores
SAID = 4
"""Lines in which one service says that one permission is missing, at most: three of many, and a count."""

until = partial(wait_until, within=WITHIN, every=0.1)
ALIAS = re.compile(r"least[A-F]\d*")

SERVICES = ("topic_sync", "heartbeat", "checkpoint", "acl_sync", "data_plane")
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
USER, NEWCOMER = USERS
"""Whom the mirror for the whole file logs in as, and whom those for one test do."""


def written(folder: Path, flow: Flow, user: str, source: str, target: str, *lines: str) -> Path:
    return two_cluster_file(
        folder,
        (flow.source, source),
        (flow.target, target),
        *login(flow.source, user),
        *login(flow.target, user),
        f"{flow}.enabled = true",
        f"topics = {flow.source}-.*",
        f"groups = {flow.source}-.*",
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
    """All five services of a flow, as `user`, for topics and groups that begin with the source's alias."""

    def __init__(self, pair: GuardedPair, folder: Path, user: str, flow: Flow, *lines: str) -> None:
        self.pair = pair
        self.user = user
        self.flow = MirroredFlow(flow, pair.a.bootstrap, pair.b.bootstrap)
        self.file = written(folder, flow, user, pair.a.guarded, pair.b.guarded, *lines)
        self.settings = settings_of(self.file, flow)
        self.services = {name: ServiceProcess(f"lockstep_{name}", self.file, str(flow)) for name in SERVICES}
        self.aliases = {"A": flow.source, "B": flow.target}
        self.last = ""
        """The mark of what was mirrored last."""

    @contextmanager
    def granted(self, source: Sequence[Grant], target: Sequence[Grant]) -> Iterator[None]:
        self.pair.a.grant(self.user, source)
        self.pair.b.grant(self.user, target)
        try:
            yield
        finally:
            self.pair.a.revoke(self.user, source)
            self.pair.b.revoke(self.user, target)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            for service in self.services.values():
                stack.enter_context(service)
            for service in self.services.values():
                service.wait_ready(WITHIN)
            yield

    def topic(self, mark: str) -> str:
        return f"{self.flow.flow.source}-{mark}"

    def remote(self, topic: str) -> str:
        return self.settings.policy.format_remote_topic(self.flow.flow.source, topic)

    def poke(self) -> str:
        """Something to do for every service: a new topic, records in it, a group, an ACL. Returns its mark."""
        mark, a = uuid.uuid4().hex[:6], self.pair.a.bootstrap
        topic = create_topic(a, self.topic(mark))
        produce(a, topic, [Record(b"k", f"{number}".encode(), partition=0) for number in range(10)])
        commit_offset(a, topic, topic, 0, 10)
        add(self.pair.a, acl(topic, principal=f"User:{mark}"))
        return mark

    def change(self) -> int:
        """What was mirrored last gets another config and a partition more; returns how many it has then."""
        bootstrap, topic = self.pair.a.bootstrap, self.topic(self.last)
        total = len(end_offsets(bootstrap, topic)) + 1
        set_configs(bootstrap, topic, {"retention.ms": f"{987654321 + total}"})
        add_partitions(bootstrap, topic, total)
        return total

    def wait_done(self, mark: str) -> None:
        """Until all that `poke` gave to do is done."""
        until(lambda: self._done(mark), what=f"all of {mark} is mirrored")
        self.last = mark

    def _done(self, mark: str) -> bool:
        b, topic = self.pair.b.bootstrap, self.topic(mark)
        remote = self.remote(topic)
        try:
            copied = len(read_topic(b, remote, isolation="read_committed")) == 10
            moved = copied and committed_offset(b, topic, remote, 0) is not None
        except KafkaException:
            return False  # it is not there yet, or has no leader
        return moved and ("ALLOW", "READ", f"User:{mark}") in acls_of(self.pair.b, remote)

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

    def ask(self, *words: str, more: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """What the command answers about our file; `more` goes behind that."""
        command = [sys.executable, "-m", "lockstep_cli", *words, str(self.file), *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)

    def check_whole(self, since: tuple[int, int] = (0, 0)) -> None:
        """Everything that a mirror does is done, and nothing was refused meanwhile: neither said so by a service nor by
        a broker, whose log has had so many refusals before."""
        b, topic = self.pair.b.bootstrap, self.topic(self.last)
        total = self.change()
        until(lambda: (row := self.flow.mirrored(topic)) and row.target_partitions == total, what="it grows")
        until(lambda: read_topic(b, "heartbeats"), what="heartbeats")
        on_target = self.settings.data_plane.offset_syncs_location == "target"
        until(lambda: self.flow.offset_syncs(topic, on_target=on_target), what="offset syncs")
        assert self.ask("pause").returncode == 0
        assert self.ask("resume").returncode == 0
        assert topic in self.ask("status", more=["--topics"]).stdout
        until(lambda: not self.troubles(), what="nothing is wrong")
        warnings = [line for s in self.services.values() for line in s.lines() if "permit" in json.dumps(line)]
        refused = [*self.pair.a.denied(self.user)[since[0] :], *self.pair.b.denied(self.user)[since[1] :]]
        # What the scene before this one asked last may be refused only now.
        refused = [line for line in refused if set(ALIAS.findall(line)) <= set(self.aliases.values())]
        assert (warnings, refused) == ([], [])


# -- what is needed ---------------------------------------------------------------------------------------------------

FLOW = Flow("leastA", "leastB")


def declared() -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    """On the source and on the target, of the usual flow."""
    with TemporaryDirectory() as folder:
        settings = settings_of(written(Path(folder), FLOW, USER, "a:1", "b:1"), FLOW)
        return source_grants(settings), target_grants(settings)


def narrowed(grant: Grant) -> Grant:
    """Where the list says every topic or group, as many as this flow has: else one would stand in for another."""
    every = grant.name == "*" and grant.resource in ("topic", "group")
    return replace(grant, name=f"{FLOW.source}-", pattern=PREFIXED) if every else grant


SOURCE, TARGET = declared()
LOOKED_FOR = Grant("group", "lockstep-follow", "Describe", "readers that are in no group look for its coordinator")
"""On the source, for who grants groups one by one: refused, it only fills the brokers' logs."""


def comes_with(grant: Grant, other: Grant) -> bool:
    """Whether who has the other has this one too."""
    if other == grant or (grant.pattern == PREFIXED and other.pattern != PREFIXED and other.name != EVERY):
        return False
    return other.covers(grant.resource, grant.name, grant.operation)


def needed_by_itself(grant: Grant, among: Sequence[Grant]) -> bool:
    return not any(comes_with(narrowed(grant), narrowed(other)) for other in among)


def at_the_start(grant: Grant) -> bool:
    """Only who begins needs it."""
    return grant.operation == "Create" and grant.pattern != PREFIXED


def after_a_start(grant: Grant) -> bool:
    """Only who begins again needs it."""
    return grant.operation == "Read" and "-events." in grant.name


def when_asked(grant: Grant) -> bool:
    """Only a command needs it."""
    return (grant.operation, grant.name.split(".")[0]) in (
        ("Write", "mm2-lockstep-commands"),
        ("Read", "mm2-offsets"),
        ("Read", "heartbeats"),
    )


def command(grant: Grant, scene: Scene, broker: GuardedBroker) -> str:
    return grant_command(grant, f"User:{scene.user}", broker.guarded)


ALONE = [("A", one) for one in SOURCE if needed_by_itself(one, SOURCE)]
ALONE += [("B", one) for one in TARGET if needed_by_itself(one, TARGET)]
"""All that nothing else of the list stands in for, with the cluster."""


# -- at a first start --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_permissions_of_a_first_start_are_named_until_all_work(pair: GuardedPair, tmp_path: Path) -> None:
    scene = Scene(pair, tmp_path, NEWCOMER, Flow("leastE", "leastF"))
    brokers = {"A": pair.a, "B": pair.b}
    lists = {"A": source_grants(scene.settings), "B": target_grants(scene.settings)}
    missing = [(alias, grant) for alias, grants in lists.items() for grant in grants if at_the_start(grant)]
    # The right to create all copies includes their checkpoints.
    missing = [one for one in missing if not any(comes_with(one[1], other) for other in lists[one[0]])]
    assert len(missing) == sum(at_the_start(grant) for _, grant in ALONE)
    if "heartbeats" in admin(pair.b.bootstrap).list_topics(timeout=WITHIN).topics:  # of another flow
        delete_topic(pair.b.bootstrap, "heartbeats")

    def said(alias: str, grant: Grant) -> bool:
        return any(command(grant, scene, brokers[alias]) in service.text() for service in scene.services.values())

    with scene.granted(lists["A"], lists["B"]), ExitStack() as stack:
        for alias, grant in missing:
            brokers[alias].revoke(NEWCOMER, [grant])
        for service in scene.services.values():
            stack.enter_context(service)
        while missing:
            named = until(lambda: [one for one in missing if said(*one)], what=f"one of {missing} is said")
            for alias, grant in named:
                brokers[alias].grant(NEWCOMER, [grant])
                missing.remove((alias, grant))
        scene.wait_done(scene.poke())
        until(lambda: not scene.troubles(), what="nothing is wrong any more")
        for name, service in scene.services.items():
            for cause in {line["text"].partition("; to grant it: ")[2] for line in service.lines() if "text" in line}:
                assert not cause or service.text().count(cause) <= SAID, (name, cause)


# -- with all of it ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(pair: GuardedPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The usual flow, with something to copy all the time."""
    scene = Scene(pair, tmp_path_factory.mktemp("least"), USER, FLOW)
    ended = threading.Event()
    with scene.granted([LOOKED_FOR, *map(narrowed, SOURCE)], [*map(narrowed, TARGET)]):
        always = create_topic(pair.a.bootstrap, scene.topic("always"), partitions=2)
        first = scene.poke()
        with scene.running():
            writer = threading.Thread(target=keep_busy, args=(pair.a.bootstrap, always, ended), daemon=True)
            writer.start()
            try:
                scene.wait_done(first)
                yield scene
            finally:
                ended.set()
                writer.join()


def keep_busy(bootstrap: str, topic: str, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(0.3):
        number += 1
        produce(bootstrap, topic, [Record(b"k", b"v", partition=at) for at in (0, 1)])
        commit_offset(bootstrap, topic, topic, 0, number)


def test_mirror_needs_exactly_the_listed_permissions(busy: Scene) -> None:
    busy.check_whole()


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "lines"),
    [
        pytest.param(
            1, ("offset-syncs.topic.location = target", "sync.topic.acls.enabled = true"), id="syncs on target"
        ),
        pytest.param(2, (IDENTITY, "exactly.once.source.support = enabled"), id="same names, transactions"),
    ],
)
def test_mirror_with_other_settings_needs_exactly_its_permissions(
    pair: GuardedPair, tmp_path: Path, number: int, lines: tuple[str, ...]
) -> None:
    scene = Scene(pair, tmp_path, NEWCOMER, Flow(f"leastC{number}", f"leastD{number}"), *lines)
    source, target = source_grants(scene.settings), target_grants(scene.settings)
    if scene.settings.data_plane.offset_syncs_location == "target":
        assert {grant.operation for grant in source} == {"Read", "Describe", "DescribeConfigs"}
    since = len(pair.a.denied(NEWCOMER)), len(pair.b.denied(NEWCOMER))
    with scene.granted(source, target), scene.running():
        scene.wait_done(scene.poke())
        scene.check_whole(since)


# -- with one of it taken away -----------------------------------------------------------------------------------------


TELLING = ("A", "Read", "*")
"""The one that `make test` takes away."""


def always_needed() -> Iterator[Any]:
    for alias, grant in ALONE:
        if not (at_the_start(grant) or after_a_start(grant) or when_asked(grant)):
            long = () if (alias, grant.operation, grant.name) == TELLING else (pytest.mark.long,)
            name = f"{alias} {grant.operation} {grant.resource} {grant.name}"
            yield pytest.param(alias, grant, id=name, marks=long)


@pytest.mark.parametrize(("alias", "grant"), always_needed())
def test_revoked_permission_is_named_and_granted_again_recovers(busy: Scene, alias: str, grant: Grant) -> None:
    broker = busy.pair.a if alias == "A" else busy.pair.b
    wanted, before = command(grant, busy, broker), busy.logged()
    with without(broker, USER, narrowed(grant)):
        mark = busy.poke()
        busy.change()
        until(lambda: any(busy.lines_with(wanted, before).values()), what=f"{wanted} is said")
    busy.wait_done(mark)
    until(lambda: not busy.troubles(), what="nothing is wrong any more")
    lines = busy.lines_with(wanted, before)
    for service, said in lines.items():
        assert len(said) <= SAID, (service, [line.get("message") for line in said])
    text = next(json.dumps(line) for said in lines.values() for line in said)
    assert f"cluster {busy.aliases[alias]} does not permit" in text
    assert f"User:{USER} lacks {grant.operation} on " in text
    assert grant.feature in text


@pytest.mark.long
def test_permission_of_a_second_start_is_named_and_waited_for(busy: Scene) -> None:
    (grant,) = (one for _, one in ALONE if after_a_start(one))
    broker, service = busy.pair.b, busy.services["heartbeat"]
    assert busy.flow.ask("refresh", "flow").kind == "Refreshed"  # an event that it reads when it begins again
    with without(broker, USER, grant):
        service.stop()
        service.start()
        until(lambda: command(grant, busy, broker) in service.text(), what=f"{grant} is said")
    until(lambda: service.ready() and not service.status(str(FLOW))["degraded"], what="nothing is wrong any more")


@pytest.mark.long
def test_command_without_its_permission_names_it(busy: Scene) -> None:
    for operation, topic, words in (
        ("Write", "mm2-lockstep-commands", ("pause",)),
        ("Read", "mm2-offsets", ("offsets", "list")),
        ("Read", "mm2-offsets", ("takeover", "--dry-run")),
        ("Read", "mm2-offsets", ("watch", "--topic", "offsets", "--from", "beginning", "--no-follow")),
        ("Read", "heartbeats", ("probe",)),
    ):
        (grant,) = (one for _, one in ALONE if one.operation == operation and one.name.split(".")[0] == topic)
        with without(busy.pair.b, USER, grant):
            said = busy.ask(*words)
        assert (said.returncode == 0) is (words[0] == "watch")  # which shows the topics that it may read
        assert command(grant, busy, busy.pair.b) in said.stdout + said.stderr
    assert busy.ask("probe").returncode == 0
