"""Kafka's published jars (broker, Connect, MirrorMaker 2), fetched once through the Ivy that pyspark carries.

The tests, `make demo` and `make bench` all start real brokers from a checkout of this repository, so the jars' home is
here and the three share it. Nothing but pyspark and a Java is needed: no Maven, no Docker, no Kafka installation.

`kafka-jars.sha256` names every jar with its checksum, so nothing is resolved at set-up: Ivy only downloads (about 10 s,
55 MB). The jars land in `.cache/kafka/<version>/jars`; a stamp beside them makes the next call free. A jar whose
checksum differs from the list is removed again and named in the error. `LOCKSTEP_MAVEN_URL` names another Maven
repository than Maven Central.

`python -m tests.support.kafka_jars` fetches; `... resolve 4.3.2 > tests/support/kafka-jars.sha256` writes the list
anew, which is how Kafka is upgraded (then `VERSION` here changes with it).

Older Kafkas, as brokers to mirror from and to, have a list of their own each (`kafka-jars-3.9.1.sha256`: broker only)
and are fetched in the same way, but not before a long test starts one.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from xml.sax.saxutils import quoteattr

from tests.support.java import NoJava, find_java
from tests.support.source_modules import REPOSITORY

VERSION = "4.3.1"
CACHES = REPOSITORY / ".cache" / "kafka"
RELOAD4J = (("org.slf4j", "slf4j-reload4j", "1.7.36"), ("ch.qos.reload4j", "reload4j", "1.2.25"))
ZOOKEEPER_FOR_JAVA_17 = ("org.apache.zookeeper", "zookeeper", "3.5.9")
"""In place of the 3.4 of Kafka before 2.4, whose client resolves no address on Java 14 and newer (ZOOKEEPER-3779)."""
REPLACED_BY_RELOAD4J = ("log4j", "slf4j-log4j12")
ATTEMPTS = 4
PAUSE_SECONDS = 2.0  # before the second attempt; doubled for each further one

Report = Callable[[str], None]


class JarsUnavailable(Exception):
    """The download failed after all attempts; the message names the first jars that are missing."""


class WrongChecksum(Exception):
    """A downloaded jar is not the one the list names."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of a Maven repository and the checksum its file must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class Kafka:
    """A published Kafka, or what else jars are fetched for, called `name`. `listed`: the file that names its jars;
    `cache`: the folder for all that is made of them."""

    version: str
    listed: Path
    cache: Path
    name: str = "Kafka"

    @classmethod
    def older(cls, version: str) -> Self:
        return cls(version, Path(__file__).with_name(f"kafka-jars-{version}.sha256"), CACHES / version)

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    @property
    def release(self) -> str:
        return self.version.rpartition(".")[0]

    @property
    def is_before_2_4(self) -> bool:
        return tuple(int(part) for part in self.version.split(".")) < (2, 4)

    @property
    def core(self) -> str:
        """Return the artifact of the broker, by the Scala that it is built for."""
        return "kafka_2.12" if self.is_before_2_4 else "kafka_2.13"

    def __str__(self) -> str:
        return self.version


CURRENT = Kafka(VERSION, Path(__file__).with_name("kafka-jars.sha256"), CACHES / VERSION)
OLDER = {kafka.release: kafka for kafka in map(Kafka.older, ("3.9.1", "2.8.2", "2.7.2", "2.4.1", "2.1.1"))}
"""By release, as 2.8."""


def home(kafka: Kafka = CURRENT) -> Path:
    """Return the folder of the jars, fetched first if need be."""
    fetch(kafka=kafka)
    return kafka.cache / "jars"


def classpath(kafka: Kafka = CURRENT) -> str:
    """Return what goes after `java -cp`: every jar by name, always in the same order (a class-data archive depends on
    it)."""
    folder = home(kafka)
    return os.pathsep.join(str(folder / jar.file_name) for jar in read_list(kafka.listed.read_text()))


def read_list(text: str) -> tuple[Jar, ...]:
    """Return lines of `<sha256>  <group>:<artifact>:<version>`, sorted as they stand."""
    jars = []
    for line in text.splitlines():
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return tuple(jars)


def fetch(report: Report = lambda line: None, kafka: Kafka = CURRENT) -> None:
    """Put every listed jar into the cache, verified. Idempotent; several processes at once wait for one another.

    Raises JarsUnavailable, WrongChecksum, NoJava.
    """
    listed = kafka.listed.read_text()
    if _is_stamped(kafka, listed):
        return
    with locked(kafka):
        if _is_stamped(kafka, listed):
            return
        _fetch_missing(kafka, read_list(listed), report)
        _stamp(kafka).write_text(hashlib.sha256(listed.encode()).hexdigest())
        shutil.rmtree(kafka.cache / "ivy", ignore_errors=True)  # a second copy of every jar


def _stamp(kafka: Kafka) -> Path:
    return kafka.cache / "verified"


def _is_stamped(kafka: Kafka, listed: str) -> bool:
    stamp = _stamp(kafka)
    return stamp.exists() and stamp.read_text() == hashlib.sha256(listed.encode()).hexdigest()


@contextmanager
def locked(kafka: Kafka = CURRENT) -> Iterator[None]:
    kafka.cache.mkdir(parents=True, exist_ok=True)
    with (kafka.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_missing(kafka: Kafka, jars: Sequence[Jar], report: Report) -> None:
    missing = [jar for jar in jars if not _is_verified(kafka, jar)]
    for attempt in range(1, ATTEMPTS + 1):
        if not missing:
            return
        report(f"{kafka.name} {kafka}: downloading {len(missing)} jars")
        said = _retrieve(kafka, missing)
        missing = [jar for jar in missing if not _is_verified(kafka, jar)]
        if missing and attempt < ATTEMPTS:
            pause = PAUSE_SECONDS * 2 ** (attempt - 1)
            report(f"{kafka.name} {kafka}: {len(missing)} of the downloads failed, again in {pause:.0f} s")
            time.sleep(pause)
    if missing:
        names = ", ".join(jar.file_name for jar in missing[:3])
        raise JarsUnavailable(f"{len(missing)} jars could not be downloaded ({names} ...): {said}")


def _is_verified(kafka: Kafka, jar: Jar) -> bool:
    file = kafka.cache / "jars" / jar.file_name
    if not file.exists():
        return False
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest == jar.sha256:
        return True
    file.unlink()
    shutil.rmtree(kafka.cache / "ivy", ignore_errors=True)
    raise WrongChecksum(
        f"{jar.file_name} of {jar.group} has SHA-256 {digest}, but {kafka.listed.name} says {jar.sha256}. "
        "It was removed; if a second download differs again, the repository does not serve the published file."
    )


def _retrieve(kafka: Kafka, jars: Iterable[Jar]) -> str:
    """One run of Ivy that downloads exactly these jars. Returns the last thing it said (the reason, if it failed)."""
    wanted = [_dependency(jar.group, jar.artifact, jar.version, transitive=False) for jar in jars]
    # Without POMs one request per jar is left; our SHA-256 is stronger than the SHA-1 Ivy would fetch beside each.
    return _ivy(wanted, kafka.cache / "jars", use_poms=False, cache=kafka.cache / "ivy")


def _dependency(group: str, artifact: str, version: str, *, transitive: bool = True) -> str:
    names = f"org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
    return f'<dependency {names} transitive="{str(transitive).lower()}"/>'


def _ivy(dependencies: Sequence[str], into: Path, *, use_poms: bool, cache: Path) -> str:
    url = os.environ.get("LOCKSTEP_MAVEN_URL")
    root = f" root={quoteattr(url)}" if url else ""
    settings = f"""<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="{str(use_poms).lower()}"{root}/></resolvers>
</ivysettings>"""
    conf = "default->master,compile,runtime" if use_poms else "default->default"
    module = f"""<ivy-module version="2.0">
  <info organisation="lockstep" module="kafka"/>
  <configurations defaultconfmapping="{conf}"><conf name="default"/></configurations>
  <dependencies>{"".join(dependencies)}</dependencies>
</ivy-module>"""
    with tempfile.TemporaryDirectory(prefix="lockstep-ivy-") as work:
        Path(work, "settings.xml").write_text(settings)
        Path(work, "ivy.xml").write_text(module)
        ran = subprocess.run(
            [
                *(str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *("-cp", _ivy_jar(), "org.apache.ivy.Main"),
                *("-settings", f"{work}/settings.xml", "-ivy", f"{work}/ivy.xml"),
                *("-retrieve", f"{into}/[artifact]-[revision].[ext]"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    printed: list[str] = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    problems = [line for line in printed if "ERROR" in line or "FAILED" in line or "xception" in line]
    return (problems or printed or ["Ivy said nothing"])[-1]


def _ivy_jar() -> str:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise JarsUnavailable("pyspark is not installed in this environment; `make setup` installs it.")
    jars = sorted((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise JarsUnavailable("this pyspark carries no Ivy.")
    return str(jars[-1])


def resolve(version: str) -> str:
    """Return the list for one Kafka version, resolved through the POMs (slow: about a minute) and hashed. MirrorMaker
    is in that of the present major version only."""
    kafka = Kafka.older(version)
    wanted = [_dependency("org.apache.kafka", kafka.core, version)]
    if kafka.is_before_2_4:
        wanted.append(_dependency(*ZOOKEEPER_FOR_JAVA_17))
    if kafka.major == CURRENT.major:
        wanted.append(_dependency("org.apache.kafka", "connect-mirror", version))
    with tempfile.TemporaryDirectory(prefix="lockstep-jars-") as work:
        said = _ivy(wanted, Path(work, "jars"), use_poms=True, cache=Path(work, "ivy"))
        jars = sorted(Path(work, "ivy").glob("*/*/*/*.jar"))
        if not jars:
            raise JarsUnavailable(f"Kafka {version} does not resolve: {said}")
        log4j = [jar.stem.removeprefix("log4j-core-") for jar in jars if jar.stem.startswith("log4j-core-")]
        # Kafka's POMs leave the logging backend to whoever packages them; these bind SLF4J 1.7 to their log4j.
        if log4j:
            backend = [_dependency("org.apache.logging.log4j", "log4j-slf4j-impl", log4j[-1], transitive=False)]
        else:
            backend = [_dependency(*coordinates, transitive=False) for coordinates in RELOAD4J]
        _ivy(backend, Path(work, "jars"), use_poms=False, cache=Path(work, "ivy"))
        lines = []
        for jar in sorted(Path(work, "ivy").glob("*/*/*/*.jar")):
            group, artifact = jar.parts[-4:-2]
            if jar.stem.endswith(("-x86_64", "-aarch_64")):
                continue  # native code beside the plain jar of the same name, which does without it
            if artifact in REPLACED_BY_RELOAD4J:
                continue
            coordinates = f"{group}:{artifact}:{jar.stem.removeprefix(artifact + '-')}"
            lines.append(f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {coordinates}\n")
    return "".join(sorted(lines, key=lambda line: line.split()[1]))


def say(line: str) -> None:
    """A Report that writes to the terminal at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch Kafka's jars into the cache.")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("resolve", help="print the list of jars for a Kafka version").add_argument("version")
    arguments = parser.parse_args()
    try:
        if arguments.command == "resolve":
            sys.stdout.write(resolve(arguments.version))
        else:
            fetch(say)
    except (JarsUnavailable, WrongChecksum, NoJava) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
