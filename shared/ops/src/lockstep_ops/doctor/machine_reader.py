"""Reads what this machine has: Python, Java, Spark, memory, open files; in a pod its DNS and its mounted files."""

import asyncio
import resource
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from lockstep_ops.doctor.checks.machine import MachineFacts, PodFacts
from lockstep_ops.formatting import in_bytes
from lockstep_ops.installation import spark_version
from lockstep_runtime.util.java import find_java, java_version, missing_java

CGROUP = Path("/sys/fs/cgroup")
"""The folder of cgroup version 2, as containers see their own."""

RESOLVER = Path("/etc/resolv.conf")
API_SERVER = "kubernetes.default.svc"


def read_machine(environment: Mapping[str, str], cgroup: Path = CGROUP) -> MachineFacts:
    """Read the facts of this machine. A JVM is started only if its folder does not name the version."""
    java = find_java(environment)
    trouble = missing_java(environment) or ""
    version = "" if java is None or trouble else f"{java_version(java)} at {java}"
    free, limit = _memory(cgroup)
    return MachineFacts(
        python=sys.version_info[:3],
        java=version,
        java_trouble=trouble,
        spark=spark_version(),
        memory_bytes=free,
        memory_limit=limit,
        open_files=_open_files(),
    )


async def read_pod(environment: Mapping[str, str], files: Iterable[Path], within_s: float) -> PodFacts | None:
    """Return the facts of this pod, or None if this is no pod.

    Args:
        environment: The environment variables.
        files: The files of the configuration, and folders of which it reads several files.
        within_s: The seconds in which DNS has to answer.
    """
    if "KUBERNETES_SERVICE_HOST" not in environment:
        return None
    paths = sorted(files)
    trouble = ""
    try:
        async with asyncio.timeout(within_s):
            await asyncio.get_running_loop().getaddrinfo(API_SERVER, None)
    except TimeoutError:
        trouble = f"no answer within {within_s:g} s"
    except socket.gaierror as exc:
        trouble = exc.strerror or str(exc)
    count = sum(not file.is_dir() for file in paths)
    return PodFacts(_name_servers(), trouble, count, tuple(filter(None, map(_unreadable, paths))))


def _unreadable(file: Path) -> tuple[str, str] | None:
    try:
        if file.is_dir():
            next(file.iterdir(), None)
            return None
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as exc:
        return str(file), exc.strerror or str(exc)
    return None


def _name_servers() -> str:
    try:
        lines = RESOLVER.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "an unknown server"
    servers = [line.split()[1] for line in lines if line.startswith("nameserver") and len(line.split()) > 1]
    return ", ".join(servers) or "an unknown server"


def _open_files() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return -1 if soft == resource.RLIM_INFINITY else soft


def _memory(cgroup: Path) -> tuple[int, str]:
    """Return the available bytes, and the container's limit as words if the limit decides."""
    free = int(psutil.virtual_memory().available)
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    if limit is None or used is None or limit - used >= free:
        return free, ""
    return max(0, limit - used), f" of the container's {in_bytes(limit)}"


def _number(file: Path) -> int | None:
    """Return the number in a file, or None if there is no such file or it says `max`."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
