"""What may die beside the source of a failover, and what the evidence has to say of the loss then."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

import psutil

from tests.support.clusters import Record, read_topic
from tests.support.runs import is_alive
from tests.support.switch_scene import SwitchScene

IN_FLIGHT_MS = 1_000
"""A record that its producer has made so long ago is in the log."""

LOSES = ("--allow-data-loss", "100000", "--allow-stale-groups", "--timeout", "60")
"""The reading of groups ends with the service that was killed, and may be older than permitted when that is back."""


class NothingToKill(AssertionError):
    """What is to be killed does not run: it was killed before, and has not started again yet."""


def kill_slots(scene: SwitchScene) -> None:
    """Kill every Python worker of Spark, as the kernel does when memory is short."""
    family = [process for process in _family(scene) if process.name() != "java"]  # its class path names PySpark too
    workers = [member for member in family if "pyspark" in " ".join(member.cmdline()[:4])]
    if not workers:
        raise NothingToKill("no slot runs")
    for worker in workers:
        with suppress(psutil.NoSuchProcess):  # it ended with its daemon
            worker.kill()


def freeze_slots_without_daemon(scene: SwitchScene) -> None:
    """Freeze every Python worker of Spark, and kill the daemon that has forked them and ends them."""
    daemons = [child for process in _family(scene) if process.name() == "java" for child in process.children()]
    workers = [worker for daemon in daemons for worker in daemon.children()]
    if not workers:
        raise NothingToKill("no slot runs")
    for worker in workers:
        worker.suspend()
    for daemon in daemons:
        daemon.kill()


def kill_jvm(scene: SwitchScene) -> None:
    """Kill Spark's JVM, with which the data plane ends."""
    for process in _family(scene):
        if process.name() == "java":
            process.kill()


def freeze_jvm(scene: SwitchScene) -> None:
    """Freeze Spark's JVM, which ends no slot and starts none any more."""
    for process in _family(scene):
        if process.name() == "java":
            process.suspend()


def kill_service(service: str, scene: SwitchScene) -> None:
    """Kill the process of a service, which may have others in it."""
    os.kill(_service_pid(scene, service), signal.SIGKILL)


def _family(scene: SwitchScene) -> list[psutil.Process]:
    driver = psutil.Process(_service_pid(scene, "data-plane"))
    return [process for process in driver.children(recursive=True) if is_alive(process)]


def _service_pid(scene: SwitchScene, service: str) -> int:
    try:
        return scene.run.service_pid(service)
    except (KeyError, psutil.NoSuchProcess) as gone:
        raise NothingToKill(f"{service} does not run") from gone


KILLS: Mapping[str, Callable[[SwitchScene], None]] = {
    "nothing": lambda scene: None,
    "slots": kill_slots,
    "daemon of frozen slots": freeze_slots_without_daemon,
    "jvm": kill_jvm,
    "frozen jvm": freeze_jvm,
    "data-plane": partial(kill_service, "data-plane"),
    "control services": partial(kill_service, "checkpoint"),
    "everything": SwitchScene.restart,
}


def was_killed(name: str, scene: SwitchScene) -> bool:
    """Kill what `KILLS` names, and return whether it ran."""
    try:
        KILLS[name](scene)
    except (NothingToKill, psutil.NoSuchProcess):
        return False
    return True


def unsaid_loss(scene: SwitchScene, evidence: Mapping[str, Any]) -> int:
    """Return how many more records are lost than the evidence says, of those that A had at the moment up to which it
    was known. A has to be back."""
    known_ms = datetime.fromisoformat(evidence["source_known_until"]).timestamp() * 1_000 - IN_FLIGHT_MS
    known_records = Counter(record.value for record in _on_source(scene) if (record.timestamp_ms or 0) <= known_ms)
    return max(0, (known_records - _copies(scene)).total() - int(evidence["lost"]))


def records_beyond_rows(scene: SwitchScene) -> int:
    """Return how many records B has that no progress row includes."""
    rows = [row for topic in scene.topics for row in scene.flow_there.progress(topic).values()]
    return _copies(scene).total() - sum(row.downstream + 1 for row in rows)


def missing_records(scene: SwitchScene) -> int:
    """Return how many records of A are not on B. A has to be back."""
    return (Counter(record.value for record in _on_source(scene)) - _copies(scene)).total()


def doubled_records(scene: SwitchScene) -> int:
    """Return how many records B has more often than A. A has to be back."""
    return (_copies(scene) - Counter(record.value for record in _on_source(scene))).total()


def _on_source(scene: SwitchScene) -> Iterator[Record]:
    return (record for topic in scene.topics for record in read_topic(scene.a.bootstrap, topic))


def _copies(scene: SwitchScene) -> Counter[bytes | None]:
    topics = [scene.copy_of(topic) for topic in scene.topics]
    return Counter(record.value for topic in topics for record in read_topic(scene.b.bootstrap, topic))
