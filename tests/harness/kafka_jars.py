"""Kafka's published jars (broker, Connect, MirrorMaker 2), fetched once through the Ivy that pyspark carries.

The tests, `make demo` and `make bench` all start real brokers from a checkout of this repository, so the jars' home is
here and the three share it. Nothing but pyspark and a Java is needed: no Maven, no Docker, no Kafka installation.

`kafka-jars.sha256` names every jar with its checksum, so nothing is resolved at set-up: Ivy only downloads (about 10 s,
55 MB). The jars land in `.cache/kafka/<version>/jars`; a stamp beside them makes the next call free. A jar whose
checksum differs from the list is removed again and named in the error. `LOCKSTEP_MAVEN_URL` names another Maven
repository than Maven Central.

`python -m tests.harness.kafka_jars` fetches; `... resolve 4.3.2 > tests/harness/kafka-jars.sha256` writes the list
anew, which is how Kafka is upgraded (then `VERSION` here changes with it).
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
from xml.sax.saxutils import quoteattr

from tests.harness.java import NoJava, find_java

__all__ = [
    "CACHE",
    "VERSION",
    "Jar",
    "JarsUnavailable",
    "WrongChecksum",
    "classpath",
    "fetch",
    "home",
    "locked",
    "read_list",
    "say",
]

VERSION = "4.3.1"
REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "kafka" / VERSION
LIST = Path(__file__).with_name("kafka-jars.sha256")
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


def home() -> Path:
    """The folder of the jars, fetched first if need be."""
    fetch()
    return CACHE / "jars"


def classpath() -> str:
    """What goes after `java -cp`: every jar by name, always in the same order (a class-data archive depends on it)."""
    folder = home()
    return os.pathsep.join(str(folder / jar.file_name) for jar in read_list(LIST.read_text()))


def read_list(text: str) -> tuple[Jar, ...]:
    """Lines of `<sha256>  <group>:<artifact>:<version>`, sorted as they stand."""
    jars = []
    for line in text.splitlines():
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return tuple(jars)


def fetch(report: Report = lambda line: None) -> None:
    """Has every listed jar in the cache, verified. Idempotent; several processes at once wait for one another.

    Raises JarsUnavailable, WrongChecksum, NoJava.
    """
    listed = LIST.read_text()
    if _is_stamped(listed):
        return
    with locked():
        if _is_stamped(listed):
            return
        _fetch_missing(read_list(listed), report)
        _stamp().write_text(hashlib.sha256(listed.encode()).hexdigest())
        shutil.rmtree(CACHE / "ivy", ignore_errors=True)  # a second copy of every jar


def _stamp() -> Path:
    return CACHE / "verified"


def _is_stamped(listed: str) -> bool:
    stamp = _stamp()
    return stamp.exists() and stamp.read_text() == hashlib.sha256(listed.encode()).hexdigest()


@contextmanager
def locked() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_missing(jars: Sequence[Jar], report: Report) -> None:
    folder = CACHE / "jars"
    missing = [jar for jar in jars if not _is_verified(folder, jar)]
    for attempt in range(1, ATTEMPTS + 1):
        if not missing:
            return
        report(f"Kafka {VERSION}: downloading {len(missing)} jars")
        said = _retrieve(missing, folder)
        missing = [jar for jar in missing if not _is_verified(folder, jar)]
        if missing and attempt < ATTEMPTS:
            pause = PAUSE_SECONDS * 2 ** (attempt - 1)
            report(f"Kafka {VERSION}: {len(missing)} of the downloads failed, again in {pause:.0f} s")
            time.sleep(pause)
    if missing:
        names = ", ".join(jar.file_name for jar in missing[:3])
        raise JarsUnavailable(f"{len(missing)} jars could not be downloaded ({names} ...): {said}")


def _is_verified(folder: Path, jar: Jar) -> bool:
    file = folder / jar.file_name
    if not file.exists():
        return False
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found == jar.sha256:
        return True
    file.unlink()
    shutil.rmtree(CACHE / "ivy", ignore_errors=True)
    raise WrongChecksum(
        f"{jar.file_name} of {jar.group} has SHA-256 {found}, but {LIST.name} says {jar.sha256}. "
        "It was removed; if a second download differs again, the repository does not serve the published file."
    )


def _retrieve(jars: Iterable[Jar], into: Path) -> str:
    """One run of Ivy that downloads exactly these jars. Returns the last thing it said (the reason, if it failed)."""
    wanted = [_dependency(jar.group, jar.artifact, jar.version, transitive=False) for jar in jars]
    # Without POMs one request per jar is left; our SHA-256 is stronger than the SHA-1 Ivy would fetch beside each.
    return _ivy(wanted, into, use_poms=False, cache=CACHE / "ivy")


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
    told: list[str] = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    problems = [line for line in told if "ERROR" in line or "FAILED" in line or "xception" in line]
    return (problems or told or ["Ivy said nothing"])[-1]


def _ivy_jar() -> str:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise JarsUnavailable("pyspark is not installed in this environment; `make setup` installs it.")
    found = sorted((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsUnavailable("this pyspark carries no Ivy.")
    return str(found[-1])


def resolve(version: str) -> str:
    """The list for one Kafka version, resolved through the POMs (slow: about a minute) and hashed."""
    wanted = [_dependency("org.apache.kafka", name, version) for name in ("kafka_2.13", "connect-mirror")]
    with tempfile.TemporaryDirectory(prefix="lockstep-jars-") as work:
        said = _ivy(wanted, Path(work, "jars"), use_poms=True, cache=Path(work, "ivy"))
        found = sorted(Path(work, "ivy").glob("*/*/*/*.jar"))
        log4j = [jar.stem.removeprefix("log4j-core-") for jar in found if jar.stem.startswith("log4j-core-")]
        if not log4j:
            raise JarsUnavailable(f"Kafka {version} does not resolve: {said}")
        # Kafka's POMs leave the logging backend to whoever packages them; this one binds SLF4J 1.7 to their log4j.
        backend = _dependency("org.apache.logging.log4j", "log4j-slf4j-impl", log4j[-1], transitive=False)
        _ivy([backend], Path(work, "jars"), use_poms=False, cache=Path(work, "ivy"))
        lines = []
        for jar in sorted(Path(work, "ivy").glob("*/*/*/*.jar")):
            group, artifact = jar.parts[-4:-2]
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
