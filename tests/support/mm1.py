"""MirrorMaker 1 itself, of the last Kafka that had it, and `lockstep legacy` in its place: both by the same files."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support import kafka_jars
from tests.support.java import find_java, jvm_performance
from tests.support.processes import LoggedProcess
from tests.support.properties_file import properties_text

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
        reader = {"bootstrap.servers": source, "group.id": group, "auto.offset.reset": "earliest"}
        (folder / "consumer.properties").write_text(properties_text(reader | dict(consumer or {})))
        (folder / "producer.properties").write_text(
            properties_text({"bootstrap.servers": target} | dict(producer or {}))
        )
        return cls(folder, options)

    @property
    def arguments(self) -> list[str]:
        files = [f"--{side}.config={self.folder / side}.properties" for side in ("consumer", "producer")]
        return [*files, *self.options]


class MirrorMaker1(LoggedProcess):
    """`kafka-mirror-maker.sh` of Kafka 3.9."""

    def __init__(self, files: LegacyFolder) -> None:
        log4j = files.folder / "log4j.properties"
        log4j.write_text(LOG4J)
        java = [str(find_java()), "-Xmx512M", *jvm_performance(""), f"-Dlog4j.configuration=file:{log4j}"]
        java += ["-cp", kafka_jars.classpath(kafka_jars.OLDER["3.9"]), "kafka.tools.MirrorMaker"]
        super().__init__([*java, *files.arguments], files.folder / "mm1.log")

    def stop(self) -> None:
        """SIGTERM: it flushes, commits and leaves its group."""
        self.end_with(143, within=STOPPED_WITHIN)


class Legacy(LoggedProcess):
    """`lockstep legacy` with the same files and options."""

    def __init__(self, files: LegacyFolder) -> None:
        command = [sys.executable, "-m", "lockstep_cli", "legacy", *files.arguments]
        super().__init__(command, files.folder / "legacy.log")

    def stop(self) -> None:
        """SIGTERM: it drains, commits and ends."""
        self.end_with(0, within=STOPPED_WITHIN)
