"""What Spark is started with: the pinned settings, ours for the kind of master, and the file's on top (no I/O)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep_config.keys.spark_settings import PINNED, SparkSettings
from lockstep_config.text.secrets import is_secret

SPARE = 2
"""Task places beyond the slots: one for a slot that is being replaced, one for interactive use."""

QUIET_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:-UsePerfData"
"""A JVM schedules a handful of endless tasks and moves no record. So it gets one collector thread, quick start, and no
counters in a file of the temporary folder. For these it would wake twenty times a second."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

USUAL: Mapping[str, str] = {
    "spark.app.name": "lockstep data plane",
    "spark.driver.memory": "512m",
    JAVA_OPTIONS: f"{QUIET_JVM} -Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.catalogImplementation": "in-memory",
    # What Spark's pages and its event log show as stars; wider than Spark's own.
    "spark.redaction.regex": "(?i)secret|passw|passphrase|token|access[.]?key|credential|private|jaas|basic[.]auth",
}
LOCAL: Mapping[str, str] = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
CLUSTER: Mapping[str, str] = {
    "spark.ui.enabled": "false",  # it would listen on every address of this machine, and asks nobody who they are
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUIET_JVM,
    # An executor that is lost is no reason to end the driver, and with it all other slots.
    "spark.executor.maxNumFailures": "2147483647",
}

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OUR_COLLECTOR = re.compile(r"-XX:\+UseSerialGC\s*")
_ARCHIVE_NAME = re.compile(r"#([^,#/\s]+)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod that the driver runs in. Empty fields: not in one."""

    name: str = ""
    namespace: str = ""


def settings_for(spark: SparkSettings, slots: int, pod: Pod) -> dict[str, str]:
    """All settings for Spark, `spark.master` too, for at most `slots` slots.

    The file's settings win over what is usual here; the pinned ones win over everything.
    """
    master = spark.master or f"local[{slots + SPARE},1]"
    found = {**USUAL}
    if master.startswith("local"):
        found |= LOCAL
    else:
        found |= CLUSTER
    if master.startswith("spark://"):
        found["spark.cores.max"] = str(slots + SPARE)
    if master.startswith("k8s://"):
        found |= _kubernetes(spark, slots, pod)
    found = _with_java_options({**found, **spark.conf}, spark.conf)
    found |= {key: pinned.value for key, pinned in PINNED.items() if pinned.value is not None}
    return {**found, "spark.master": master}


def _with_java_options(found: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Options that the file gives the JVMs beside ours (`defaultJavaOptions`) come after ours, so that they win. A
    collector of the file's replaces ours: a JVM refuses two."""
    both = dict(found)
    for side in ("driver", "executor"):
        options, ours = chosen.get(f"spark.{side}.defaultJavaOptions"), f"spark.{side}.extraJavaOptions"
        if options and ours in found and ours not in chosen:
            kept = _OUR_COLLECTOR.sub("", found[ours]) if _COLLECTOR.search(options) else found[ours]
            both[ours] = f"{kept} {options}"
            del both[f"spark.{side}.defaultJavaOptions"]
    return both


def in_folder(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The same, with the driver's temporary files in `folder`, unless the settings say where. The program that starts
    executors gives them theirs."""
    options = settings.get(JAVA_OPTIONS, "")
    if "java.io.tmpdir" in options:
        return dict(settings)
    return {**settings, JAVA_OPTIONS: f'{options} "-Djava.io.tmpdir={folder}"'.lstrip()}


def without_secrets(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings that are allowed on a command line, and the others."""
    secrets = {key: value for key, value in settings.items() if is_secret(key)}
    return {key: value for key, value in settings.items() if key not in secrets}, secrets


def _kubernetes(spark: SparkSettings, slots: int, pod: Pod) -> dict[str, str]:
    """Client mode: the driver is this process, its executors are pods that it asks for."""
    cores = max(1, int(spark.conf.get("spark.executor.cores", "1")))
    found = {
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(-(-slots // cores)),
        # Each slot is a Python process beside the JVM: as much again as the JVM's heap for each of them.
        "spark.executor.memoryOverheadFactor": str(float(cores)),
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104  # the pod's own network
        # Else executors get the address above, at which they find only themselves.
        "spark.kubernetes.executor.useDriverPodIP": "false",
        "spark.driver.port": "7078",
        "spark.driver.blockManager.port": "7079",
    }
    if pod.namespace:
        found["spark.kubernetes.namespace"] = pod.namespace
    if pod.name:
        # Its executors then belong to the driver's pod: Kubernetes removes them with it, however it ends.
        found["spark.kubernetes.driver.pod.name"] = pod.name
    return found


def executors_python(settings: Mapping[str, str], own: str) -> str:
    """The Python that forks the slots: what `spark.pyspark.python` says, else the one in a packed environment
    (`spark.archives=FILE#NAME`). Else the path of the driver's `own`, which an image common to both has."""
    if chosen := settings.get("spark.pyspark.python"):
        return chosen
    if not settings["spark.master"].startswith("local") and (
        named := _ARCHIVE_NAME.search(settings.get("spark.archives", ""))
    ):
        return f"./{named[1]}/bin/python"
    return own
