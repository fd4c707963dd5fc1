"""Two clusters, flows in both directions, an application that runs on one of them, and the hooks that move it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import GroupStatus, SlotStatus, Switch
from tests.support.application import Application
from tests.support.broker import Broker
from tests.support.clusters import committed_offset, create_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.http_server import Answer, HttpServer
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun
from tests.support.services import two_cluster_file

WITHIN = 120.0
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
PARTITIONS = 3


class SwitchScene:
    """Use within `running`. The application works on A first. Hooks come as HTTP calls and move it."""

    def __init__(
        self,
        folder: Path,
        a: Broker,
        b: Broker,
        *lines: str,
        identity: bool = False,
        renames: bool = False,
        topics: int = 2,
        hooks: bool = True,
        source_address: str = "",
        application: Callable[[Sequence[str]], Application] | None = None,
    ) -> None:
        """`renames`: with `identity`, topics get `eu.` before their names on B, and lose it on the way back.
        `source_address`: where Lockstep reaches A, if that is not where the application does. `application`: makes
        another one than usual for the topics."""
        self.mark = unique_name("sw").replace("-", "")
        self.a, self.b = a, b
        self.there, self.back = Flow(f"a{self.mark}", f"b{self.mark}"), Flow(f"b{self.mark}", f"a{self.mark}")
        self.identity = identity
        self.prefix = "eu." if renames else ""
        renaming = (
            f"{self.there}.lockstep.rename = ({self.mark}-.*) -> eu.$1",
            f"{self.back}.lockstep.rename = eu\\\\.({self.mark}-.*) -> $1",
        )
        self.topics = [f"{self.mark}-orders{number}" for number in range(topics)]
        group = f"{self.mark}-billing"
        made = application or (lambda topics: Application(group, topics, partitions=PARTITIONS))
        self.app = made(self.topics)
        self.calls: list[dict[str, Any]] = []
        self.refused_hooks: set[str] = set()
        self._server = HttpServer(lambda request: Answer(self._called(json.loads(request.body))))
        address = f"http://127.0.0.1:{self._server.port}"
        hook_lines = [f"lockstep.switch.hook.{name} = {address}" for name in ("before", "fence", "redirect", "after")]
        self.file = two_cluster_file(
            folder,
            (self.there.source, source_address or a.bootstrap),
            (self.there.target, b.bootstrap),
            f"{self.there}.enabled = true",
            f"{self.back}.enabled = true",
            f"topics = (eu\\\\.)?{self.mark}-.*",
            f"groups = {self.mark}-.*",
            "tasks.max = 1",
            "checkpoints.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            "emit.checkpoints.interval.seconds = 5",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 5",
            "refresh.topics.interval.seconds = 1",
            *([IDENTITY] if identity else []),
            *(renaming if renames else ()),
            *(hook_lines if hooks else []),
            *lines,
        )
        self.flow_there = MirroredFlow(self.there, a.bootstrap, b.bootstrap)
        self.flow_back = MirroredFlow(self.back, b.bootstrap, a.bootstrap)

    @contextmanager
    def hooks_served(self, partitions: int = PARTITIONS, *, on_both: bool = True) -> Iterator[None]:
        """Create the topics on both clusters, or only on A, and answer hooks until the end."""
        for topic in self.topics:
            for broker in (self.a, self.b) if on_both else (self.a,):
                create_topic(broker.bootstrap, self.name_on(broker, topic), partitions=partitions)
        with self._server:
            yield

    @contextmanager
    def running(self) -> Iterator["SwitchScene"]:
        """Run Lockstep for both flows and the application on A. Yield once the target follows it."""
        with ExitStack() as stack:
            stack.enter_context(self.hooks_served())
            self.run = LockstepRun(self.file)
            stack.callback(self._end_run)
            stack.enter_context(self.app)
            self.start_on(self.there.source)
            self.wait_followed(self.flow_there)
            yield self

    def fence(self) -> None:
        """End the application, as the hook does."""
        self.app.stop()

    def start_on(self, alias: str) -> None:
        """Start the application on the cluster with this alias."""
        is_source = alias == self.there.source
        other = self.there.target if is_source else self.there.source
        self._at = alias
        copies = [] if self.identity else [f"{other}.{topic}" for topic in self.topics]
        broker = self.a if is_source else self.b
        topics = [self.name_on(broker, topic) for topic in self.topics]
        self.app.start(broker.bootstrap, [*topics, *copies], "" if is_source else self.prefix)

    def name_on(self, broker: Broker, topic: str) -> str:
        """Return the name of a topic of the application on a cluster."""
        return topic if broker is self.a else f"{self.prefix}{topic}"

    def is_on(self, alias: str) -> bool:
        """Return whether the application was started last on the cluster with this alias."""
        return self._at == alias

    def wait_followed(self, flow: MirroredFlow) -> None:
        """Wait until the group is translated and moved, and every topic is copied."""

        def is_followed() -> bool:
            groups = [row for row in flow.rows(GroupStatus) if row.group == self.app.group]
            source = self.b if flow is self.flow_back else self.a
            progress = [flow.progress(self.name_on(source, topic)) for topic in self.topics]
            return bool(groups and groups[0].synced) and all(len(rows) == PARTITIONS for rows in progress)

        wait_until(is_followed, within=WITHIN, every=0.5, what=f"{flow} follows the application")

    def wait_translated(self) -> None:
        """Wait until the group's checkpoints are those of what it has committed on A. The application has to be
        stopped."""
        wanted = {
            (self.copy_of(topic), number): committed_offset(self.a.bootstrap, self.app.group, topic, number)
            for topic in self.topics
            for number in range(PARTITIONS)
        }

        def is_translated() -> bool:
            (row,) = [row for row in self.flow_there.rows(GroupStatus) if row.group == self.app.group]
            return {(topic, number): upstream for topic, number, upstream, _ in row.positions} == wanted

        wait_until(is_translated, within=WITHIN, every=0.5, what="the group is translated")

    def wait_written_down(self) -> None:
        """Wait until the rows say that everything is copied that the application has written. It has to be stopped."""
        for topic in self.topics:
            self.flow_there.wait_written_down(topic)

    def switch(self, verb: str, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Return what `lockstep switchover|failover|failback` of the flow there prints as JSON."""
        ran = subprocess.run(self.command(verb, *arguments), capture_output=True, text=True, timeout=300, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == code, ran.stdout + ran.stderr
        body: dict[str, Any] = json.loads(ran.stdout) if ran.stdout else {}
        return {**body, "said": ran.stderr}

    def dry_run(self, verb: str, *arguments: str) -> Sequence[str]:
        """Return what speaks against a switch of the flow there now, as the command says it."""
        command = self.command(verb, "--dry-run", *arguments)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        return [refusal["text"] for refusal in json.loads(ran.stdout)["refusals"]]

    def continue_last(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Continue the last switch, named by its id: it may have ended."""
        last = self.last()
        assert last is not None
        return self.switch(verb, "--continue", "--id", last.id, *arguments)

    def command(self, verb: str, *arguments: str) -> list[str]:
        """Return the command line of a switch."""
        given = () if {"--continue", "--abort", "--status", "--dry-run", "--drill"} & set(arguments) else ("--yes",)
        evidence = ("--evidence", str(self.file.parent / f"evidence-{time.monotonic_ns()}"))
        return [
            *(sys.executable, "-m", "lockstep_cli", verb, str(self.file), "--flow", str(self.there)),
            *("--output", "json", *given, *evidence, *arguments),
        ]

    def last(self, flow: MirroredFlow | None = None) -> Switch | None:
        """Return the row of the last switch by a flow."""
        return next(iter((flow or self.flow_there).rows(Switch)), None)

    def copy_of(self, topic: str) -> str:
        """Return what the copy of a topic of A is called on B."""
        return self.name_on(self.b, topic) if self.identity else f"{self.there.source}.{topic}"

    def wait_released(self) -> None:
        """Wait until every slot of the flow there says that it has let go of what it had."""

        def is_released() -> bool:
            rows = self.flow_there.rows(SlotStatus)
            return bool(rows) and all(row.phase == "released" for row in rows)

        wait_until(is_released, within=WITHIN, every=0.5, what="slots are released")

    def restart(self) -> None:
        """Kill all of Lockstep, and start it again."""
        self.run.kill()
        self.run = LockstepRun(self.file)

    def hooks(self) -> Sequence[str]:
        """Return the hooks that were called, in order."""
        return [call["hook"] for call in self.calls]

    def _end_run(self) -> None:
        self.run.kill()

    def _called(self, call: dict[str, Any]) -> int:
        self.calls.append(call)
        hook = call["hook"]
        if hook in self.refused_hooks:
            return 500
        if hook == "fence":
            self.fence()
        elif hook == "redirect":
            self.start_on(call["target"])
        elif hook == "after" and call["result"] == "aborted":
            self.start_on(call["source"])
        return 200
