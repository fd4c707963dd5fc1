"""The Apache Spark operator, a released version, made from its source: `make spark-operator` does it once.

No jar of it is published. Its source comes from a git repository (`SOURCE`, else GitHub), at the commit of the
release; the jars that it is declared to need, and a Java compiler, as Kafka's do: `spark-operator-jars.sha256` lists
them, and the Ivy inside pyspark downloads them. So a Java that runs is enough, and about a minute. All of it lies in
`.cache/spark-operator/VERSION`; a stamp makes the next call free.

0.8.0 is the newest whose declared libraries could all be had when this was written.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import wait_until
from tests.support.java import NoJava, find_java
from tests.support.kafka_jars import JarsUnavailable, Kafka, WrongChecksum, classpath, fetch, home, say
from tests.support.processes import end, spawn, tail
from tests.support.source_modules import REPOSITORY

VERSION = "0.8.0"
COMMIT = "18a52002cb8393ae97491bb9e7c342933817cb60"
GITHUB = "https://github.com/apache/spark-kubernetes-operator.git"
CACHE = REPOSITORY / ".cache" / "spark-operator" / VERSION
JARS = Kafka(VERSION, Path(__file__).with_name("spark-operator-jars.sha256"), CACHE, name="Spark operator")
SOURCE, CLASSES, STAMP = CACHE / "source", CACHE / "classes", CACHE / "built"
MODULES = ("spark-operator-api", "spark-submission-worker", "spark-operator")
CRDS = SOURCE / "build-tools" / "helm" / "spark-kubernetes-operator" / "crds"
"""The folder of its custom resource definitions."""

WHY = (
    "the Apache Spark operator is not built: `make spark-operator` does it once, in about a minute, from GitHub or "
    "SOURCE=REPOSITORY, a git clone of it"
)
"""What a test that is skipped for want of it says."""

LOGGING = """\
rootLogger.level=INFO
rootLogger.appenderRef.stdout.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{HH:mm:ss.SSS} %p %X{resource.name} %c{1} %m%n%ex
"""


class NotBuilt(Exception):
    """It could not be built; the message says what the failing command said."""


def built() -> bool:
    """Return whether the operator is built."""
    return STAMP.is_file() and STAMP.read_text() == COMMIT


def build(source: str) -> None:
    """Build the operator. Idempotent. Raises NotBuilt, JarsUnavailable, WrongChecksum, NoJava."""
    if built():
        return
    fetch(say, JARS)
    _take_source(source)
    say(f"Spark operator {VERSION}: compiling")
    _compile()
    STAMP.write_text(COMMIT)


def _take_source(source: str) -> None:
    say(f"Spark operator {VERSION}: source from {source}")
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    _run("git", "init", "--quiet", "--bare", str(CACHE / "git"))
    _run("git", "-C", str(CACHE / "git"), "fetch", "--quiet", "--depth=1", source, f"refs/tags/{VERSION}")
    commit = _run("git", "-C", str(CACHE / "git"), "rev-parse", "FETCH_HEAD^{commit}").strip()
    if commit != COMMIT:
        raise NotBuilt(f"{source} has {commit} as {VERSION}, not {COMMIT}")
    _run("git", "-C", str(CACHE / "git"), "archive", "--output", str(CACHE / "source.tar"), COMMIT)
    _run("tar", "-xf", str(CACHE / "source.tar"), "-C", str(SOURCE))
    shutil.rmtree(CACHE / "git")
    (CACHE / "source.tar").unlink()


def _compile() -> None:
    """Compile with Eclipse's compiler, which a Java without one runs, and Lombok inside it."""
    shutil.rmtree(CLASSES, ignore_errors=True)
    CLASSES.mkdir()
    files = [str(file) for module in MODULES for file in sorted((SOURCE / module / "src/main/java").rglob("*.java"))]
    (CACHE / "files").write_text("\n".join(files))
    [lombok] = home(JARS).glob("lombok-*.jar")
    [compiler] = home(JARS).glob("ecj-*.jar")
    _run(
        *(str(find_java()), f"-javaagent:{lombok}=ECJ", "-cp", str(compiler)),
        *("org.eclipse.jdt.internal.compiler.batch.Main", "-17", "-nowarn", "-proc:none", "-encoding", "UTF-8"),
        *("-d", str(CLASSES), "-cp", classpath(JARS), f"@{CACHE / 'files'}"),
    )
    for module in MODULES:
        if (resources := SOURCE / module / "src/main/resources").is_dir():
            shutil.copytree(resources, CLASSES, dirs_exist_ok=True)


def _run(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotBuilt(f"{' '.join(command[:6])} ended with {ran.returncode}: {(ran.stderr or ran.stdout)[-2000:]}")
    return ran.stdout


@contextmanager
def running(namespace: str, folder: Path) -> Iterator[Path]:
    """Yield the operator as a process beside the cluster of kubectl's current context, for one namespace: its log."""
    properties, logging, log = folder / "operator.properties", folder / "log4j2.properties", folder / "operator.log"
    key = "spark.kubernetes.operator"
    properties.write_text(f"{key}.watchedNamespaces={namespace}\n{key}.namespace={namespace}\n")
    logging.write_text(LOGGING)
    command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-Dlog4j.configurationFile={logging}", f"-D{key}.basePropertyFileName={properties}"]
    command += ["-cp", f"{CLASSES}{os.pathsep}{classpath(JARS)}", "org.apache.spark.k8s.operator.SparkOperator"]
    process = spawn(command, output=log)

    def started() -> bool:
        assert process.poll() is None, f"the operator ended: {tail(log)}"
        assert "'sparkappreconciler' controller started" in log.read_text(), tail(log)
        return True

    try:
        wait_until(started, within=60, every=0.5, what="the operator watches")
        yield log
    finally:
        end(process, within=10)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the Apache Spark operator from its source.")
    parser.add_argument("--source", default=os.environ.get("SOURCE") or GITHUB, help="a git repository that has it")
    try:
        build(parser.parse_args().source)
    except (NotBuilt, JarsUnavailable, WrongChecksum, NoJava) as problem:
        sys.exit(str(problem))
    say(f"Spark operator {VERSION}: {CLASSES}")


if __name__ == "__main__":
    main()
