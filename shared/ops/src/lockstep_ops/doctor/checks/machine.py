"""Checks of this machine. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import CheckFinding
from lockstep_ops.formatting import count_text, in_bytes

SUBJECT = "this machine"

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)

NEEDED_BYTES = 1_200 << 20
"""The memory for a flow. Its services took 1,114 MiB with two slots (`make bench ONLY=catch_up`, 24 November 2026)."""

NEEDED_FILES = 1_024
"""The usual limit of open files, enough for some hundred brokers. A service has four connections to each at most."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The facts of this machine.

    `java_trouble` is "" if Spark can start with that Java. `spark` is "" if it is not installed. `memory_bytes` and
    `open_files` are None if unknown; `open_files` is -1 without a limit.
    """

    python: tuple[int, int, int]
    java: str
    java_trouble: str
    spark: str
    memory_bytes: int | None
    memory_limit: str
    open_files: int | None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """The facts of a pod.

    `dns_trouble` is "" if the cluster's DNS answers. `unreadable` has files of the configuration, each with what is
    wrong.
    """

    dns_server: str
    dns_trouble: str
    files: int
    unreadable: tuple[tuple[str, str], ...]


def judge_machine(facts: MachineFacts, pod: PodFacts | None) -> Iterator[CheckFinding]:
    """Yield the findings in order. Those of a pod come only in a pod."""
    yield _python(facts)
    if facts.java_trouble:
        yield registry.JAVA.failed(SUBJECT, facts.java_trouble)
    else:
        yield registry.JAVA.ok(SUBJECT, facts.java)
    if facts.spark:
        yield registry.SPARK.ok(SUBJECT, facts.spark)
    else:
        yield registry.SPARK.failed(SUBJECT, "PySpark is not installed for this Python")
    yield _memory(facts)
    yield _open_files(facts)
    if pod is not None:
        yield from _pod(pod)


def _python(facts: MachineFacts) -> CheckFinding:
    version = ".".join(map(str, facts.python))
    if facts.python[:2] < OLDEST_PYTHON:
        return registry.PYTHON.failed(SUBJECT, f"{version} is too old")
    if facts.python[:2] > NEWEST_PYTHON:
        return registry.PYTHON.warning(SUBJECT, f"{version} is newer than what Lockstep is tested with")
    return registry.PYTHON.ok(SUBJECT, version)


def _memory(facts: MachineFacts) -> CheckFinding:
    if facts.memory_bytes is None:
        return registry.MEMORY.unknown(SUBJECT, "this system does not say how much memory is available")
    text = f"{in_bytes(facts.memory_bytes)} available{facts.memory_limit}"
    if facts.memory_bytes < NEEDED_BYTES:
        return registry.MEMORY.warning(SUBJECT, f"{text}; all services of a flow need about {in_bytes(NEEDED_BYTES)}")
    return registry.MEMORY.ok(SUBJECT, text)


def _open_files(facts: MachineFacts) -> CheckFinding:
    if facts.open_files is None:
        return registry.OPEN_FILES.unknown(SUBJECT, "this system has no such limit that can be read")
    if facts.open_files == -1:
        return registry.OPEN_FILES.ok(SUBJECT, "no limit")
    text = f"a process may open {facts.open_files:,} files"
    if facts.open_files < NEEDED_FILES:
        return registry.OPEN_FILES.warning(SUBJECT, f"{text}; {NEEDED_FILES:,} are usual")
    return registry.OPEN_FILES.ok(SUBJECT, text)


def _pod(pod: PodFacts) -> Iterator[CheckFinding]:
    if pod.dns_trouble:
        yield registry.POD_DNS.warning(SUBJECT, f"kubernetes.default.svc cannot be resolved: {pod.dns_trouble}")
    else:
        yield registry.POD_DNS.ok(SUBJECT, f"kubernetes.default.svc is resolved by {pod.dns_server}")
    for file, reason in pod.unreadable:
        yield registry.SECRETS.failed(SUBJECT, f"{file} cannot be read: {reason}")
    if not pod.unreadable:
        yield registry.SECRETS.ok(SUBJECT, f"{count_text(pod.files, 'file')} of the configuration can be read")
