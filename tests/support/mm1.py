"""MirrorMaker 1 itself, of the last Kafka that had it, and `lockstep legacy` in its place: both by the same files."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import kafka_jars
from tests.support.java import find_java, jvm_performance
from tests.support.processes import end, kill, show, spawn, tail

STOPPED_WITHIN = 60.0
LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class LegacyFolder:
    """The two files, and the options of the command line behind them, with their dashes."""

    folder: Path
    options: Sequence[str]

    @classmethod
    def write(
        cls,
        folder: Path,
        source: str,
        target: str,
        group: str,
        *options: str,
        consumer: Mapping[str, str] | None = None,
        producer: Mapping[str, str] | None = None,
    ) -> Self:
        once = {"bootstrap.servers": source, "group.id": group, "auto.offset.reset": "earliest"}
        (folder / "consumer.properties").write_text(_lines(once | dict(consumer or {})))
        (folder / "producer.properties").write_text(_lines({"bootstrap.servers": target} | dict(producer or {})))
        return cls(folder, options)

    @property
    def arguments(self) -> list[str]:
        files = [f"--{side}.config={self.folder / side}.properties" for side in ("consumer", "producer")]
        return [*files, *self.options]


class _Process:
    """One at a time; a context manager that leaves none behind. What it logs is kept over restarts."""

    log: Path

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self.log = log

    def __enter__(self) -> Self:
        self._process: subprocess.Popen[bytes] = spawn(self._command, output=self.log)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            show(self.log, lines=40)
        kill(self._process)

    def _stop(self, status: int) -> None:
        ended_with = end(self._process, within=STOPPED_WITHIN)
        assert ended_with == status, f"it ended with status {ended_with}, not in order:\n{tail(self.log, 40)}"

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        return self._process.pid

    def kill(self) -> None:
        kill(self._process)

    def wait(self, within: float) -> int:
        """Its exit status once it has ended by itself."""
        return self._process.wait(within)


class MirrorMaker1(_Process):
    """`kafka-mirror-maker.sh` of Kafka 3.9."""

    def __init__(self, files: LegacyFolder) -> None:
        log4j = files.folder / "log4j.properties"
        log4j.write_text(LOG4J)
        java = [str(find_java()), "-Xmx512M", *jvm_performance(""), f"-Dlog4j.configuration=file:{log4j}"]
        java += ["-cp", kafka_jars.classpath(kafka_jars.OLDER["3.9"]), "kafka.tools.MirrorMaker"]
        super().__init__([*java, *files.arguments], files.folder / "mm1.log")

    def stop(self) -> None:
        """SIGTERM: it flushes, commits and leaves its group."""
        self._stop(143)


class Legacy(_Process):
    """`lockstep legacy` with the same files and options."""

    def __init__(self, files: LegacyFolder) -> None:
        command = [sys.executable, "-m", "lockstep_cli", "legacy", *files.arguments]
        super().__init__(command, files.folder / "legacy.log")

    def stop(self) -> None:
        """SIGTERM: it drains, commits and ends."""
        self._stop(0)


def _lines(values: Mapping[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in values.items())
