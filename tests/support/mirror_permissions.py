"""A mirror whose principals have exactly the declared permissions, or fewer."""

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import KafkaException

from lockstep_config import FlowSettings, load
from lockstep_config.credentials.permissions import EVERY, PREFIXED, Grant, grant_command, source_grants, target_grants
from lockstep_state.names import Flow
from tests.conftest import GuardedPair
from tests.support.acls import acl, acls_of, add
from tests.support.clusters import (
    Record,
    add_partitions,
    commit_offset,
    committed_offset,
    create_topic,
    end_offsets,
    produce,
    read_topic,
    set_configs,
)
from tests.support.eventually import wait_until
from tests.support.guarded import USERS, GuardedBroker, login
from tests.support.mirror import MirroredFlow
from tests.support.services import ServiceProcess, two_cluster_file

WITHIN = 180.0  # seconds; usual is 5, but several test runs may share the cores
SAID = 4
"""Lines in which one service says that one permission is missing, at most: three of many, and a count."""

until = partial(wait_until, within=WITHIN, every=0.1)
ALIAS = re.compile(r"least[A-F]\d*")

SERVICES = ("topic_sync", "heartbeat", "checkpoint", "acl_sync", "data_plane")
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
        """Give what was mirrored last another config and one more partition. Return how many it has then."""
        bootstrap, topic = self.pair.a.bootstrap, self.topic(self.last)
        total = len(end_offsets(bootstrap, topic)) + 1
        set_configs(bootstrap, topic, {"retention.ms": f"{987654321 + total}"})
        add_partitions(bootstrap, topic, total)
        return total

    def wait_done(self, mark: str) -> None:
        """Wait until all that `poke` gave to do is done."""
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
        """Return what the services say is wrong now."""
        troubles: list[Any] = []
        for service in self.services.values():
            said = service.status(str(self.flow.flow))
            troubles += [said["troubles"], said.get("failing"), said.get("left_alone")]
            troubles += [said["phase"]] if said.get("phase") == "not-permitted" else []
        return [trouble for trouble in troubles if trouble]

    def lines_with(self, words: str, since: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
        """Return what each service has logged in which these words stand."""
        return {
            name: [line for line in service.lines()[since[name] :] if words in json.dumps(line)]
            for name, service in self.services.items()
        }

    def logged(self) -> dict[str, int]:
        return {name: len(service.lines()) for name, service in self.services.items()}

    def ask(self, *words: str, more: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Return what the command answers about our file; `more` goes behind that."""
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
        assert (warnings, refused) == ([], []), (warnings, refused)


# -- what is needed ---------------------------------------------------------------------------------------------------

FLOW = Flow("leastA", "leastB")


def declared() -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    """On the source and on the target, of the usual flow."""
    with TemporaryDirectory() as folder:
        settings = settings_of(written(Path(folder), FLOW, USER, "a:1", "b:1"), FLOW)
        return source_grants(settings), target_grants(settings)


def narrowed(grant: Grant) -> Grant:
    """Return the grant for the topics or groups of this flow where the list says every one: else one would stand in for
    another."""
    every = grant.name == "*" and grant.resource in ("topic", "group")
    return replace(grant, name=f"{FLOW.source}-", pattern=PREFIXED) if every else grant


SOURCE, TARGET = declared()


def comes_with(grant: Grant, other: Grant) -> bool:
    """Return whether whoever has the other permission has this one too."""
    if other == grant or (grant.pattern == PREFIXED and other.pattern != PREFIXED and other.name != EVERY):
        return False
    return other.covers(grant.resource, grant.name, grant.operation)


def needed_by_itself(grant: Grant, among: Sequence[Grant]) -> bool:
    return not any(comes_with(narrowed(grant), narrowed(other)) for other in among)


def at_the_start(grant: Grant) -> bool:
    """Return whether it is needed only at the start."""
    return grant.operation == "Create" and grant.pattern != PREFIXED


def command(grant: Grant, scene: Scene, broker: GuardedBroker) -> str:
    return grant_command(grant, f"User:{scene.user}", broker.guarded)


ALONE = [("A", one) for one in SOURCE if needed_by_itself(one, SOURCE)]
