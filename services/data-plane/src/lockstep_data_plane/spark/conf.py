"""The settings of Spark: pinned ones, Lockstep's for the kind of master, the file's, and those of a submitter.

A submitter, such as the Apache Spark operator, makes the driver's pod and writes Spark's settings into a file there. It
counts on them when it searches the application's executors, and puts the pod's address into the environment. The
process in the pod and its JVM stay Lockstep's. There is no I/O here but in `submitted_to`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstep_config.keys.spark_settings import (
    CONF_PREFIX,
    ENCRYPTION,
    MASTER,
    PINNED,
    SparkSettings,
    check_conf,
    is_local,
)
from lockstep_config.text.files import read_content
from lockstep_config.text.properties import read_properties
from lockstep_config.text.secrets import is_secret
from lockstep_config.text.values import BadValue
from lockstep_data_plane.transform.jar import JAR, PLUGIN

SPARE = 2
"""Cores beyond the slots: one for a slot that is being replaced, one for interactive use."""

QUIET_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmn16m -Xss512k -XX:-UsePerfData"
"""The options of a JVM that schedules a handful of endless tasks and moves no record.

It gets one collector thread and a quick start. It keeps no counters in a file of the temporary folder, which would wake
it twenty times a second.
"""

EVALUATING_JVM = "-XX:+UseSerialGC -Xmn64m -XX:-UsePerfData"
"""The options of a JVM that evaluates transforms: it has all compilers, and room for records that live briefly."""

EVALUATING_MEMORY = "768m"
"""The heap of such a JVM. Each connection of a slot holds a request and its answer, uncompressed, at times."""

LAUNCHER_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""The options of the short JVM in which Spark's scripts put the driver's command line together."""

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
    "spark.ui.enabled": "false",  # it would listen on every address of this machine, without authentication
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUIET_JVM,
    # An executor that is lost is no reason to end the driver, and with it all other slots.
    "spark.executor.maxNumFailures": "2147483647",
}

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OUR_COLLECTOR = re.compile(r"-XX:\+UseSerialGC\s*")
_ARCHIVE_OPTION = re.compile(r"-Xshare:|-XX:[+-]?\w*(?:SharedArchive|ArchiveClasses)")
_ARCHIVE_NAME = re.compile(r"#([^,#/\s]+)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod that the driver runs in. Its fields are empty outside of one."""

    name: str = ""
    namespace: str = ""


def settings_for(spark: SparkSettings, slots: int, pod: Pod, *, evaluates: bool = False) -> dict[str, str]:
    """Return all settings of Spark, `spark.master` too, for at most `slots` slots.

    The file's settings win over Lockstep's, and the pinned ones win over everything. If `evaluates`, the JVMs of slots
    evaluate transforms.
    """
    master = spark.master or f"local[{slots + SPARE},1]"
    settings = {**USUAL}
    if is_local(master):
        settings |= LOCAL
    else:
        settings |= CLUSTER
    if master.startswith("spark://"):
        settings["spark.cores.max"] = str(slots + SPARE)
    if master.startswith("k8s://"):
        settings |= _kubernetes(spark, slots, pod)
    if evaluates:
        settings |= _evaluating(master)
    settings = _with_java_options({**settings, **spark.conf}, spark.conf)
    if evaluates:
        settings |= _with_plugin(settings)
    settings |= {key: pinned.value for key, pinned in PINNED.items() if pinned.value is not None}
    if not is_local(master):
        settings[ENCRYPTION] = "true"  # the slots' specifications have the passwords of both clusters
    return {**settings, "spark.master": master}


def _evaluating(master: str) -> dict[str, str]:
    """Return the settings of the JVMs that evaluate transforms. In local mode the driver's JVM does."""
    if is_local(master):
        options = USUAL[JAVA_OPTIONS].replace(QUIET_JVM, EVALUATING_JVM)
        return {JAVA_OPTIONS: options, "spark.driver.memory": EVALUATING_MEMORY}
    return {"spark.executor.extraJavaOptions": EVALUATING_JVM, "spark.executor.memory": EVALUATING_MEMORY}


def _with_plugin(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that bring the transforms' jar and plugin, behind what the file names."""
    added = {"spark.jars": str(JAR), "spark.plugins": PLUGIN}
    return {key: ",".join(filter(None, (settings.get(key, ""), value))) for key, value in added.items()}


def _with_java_options(settings: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the file's `defaultJavaOptions` behind Lockstep's options, so that they win.

    A garbage collector of the file replaces Lockstep's, because a JVM refuses two.
    """
    joined = dict(settings)
    for side in ("driver", "executor"):
        options, option = chosen.get(f"spark.{side}.defaultJavaOptions"), f"spark.{side}.extraJavaOptions"
        if options and option in settings and option not in chosen:
            lockstep_options = (
                _OUR_COLLECTOR.sub("", settings[option]) if _COLLECTOR.search(options) else settings[option]
            )
            joined[option] = f"{lockstep_options} {options}"
            del joined[f"spark.{side}.defaultJavaOptions"]
    return joined


def in_folder(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the settings with the driver's temporary files in `folder`, unless they name one.

    The program that starts executors gives them their own folder.
    """
    options = settings.get(JAVA_OPTIONS, "")
    if "java.io.tmpdir" in options:
        return dict(settings)
    return {**settings, JAVA_OPTIONS: f'{options} "-Djava.io.tmpdir={folder}"'.lstrip()}


def with_archive(settings: Mapping[str, str], archive: Path | None, submit_options: str = "") -> dict[str, str]:
    """Return the settings with a class-data archive for the driver's JVM.

    They stay as they are if they, or `submit_options` (`SPARK_SUBMIT_OPTS`), have an option about one. A JVM that the
    archive does not suit goes without.
    """
    options = settings.get(JAVA_OPTIONS, "")
    if archive is None or _ARCHIVE_OPTION.search(f"{options} {submit_options}"):
        return dict(settings)
    archive_options = f'"-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:cds=off'
    return {**settings, JAVA_OPTIONS: f"{options} {archive_options}".lstrip()}


def without_secrets(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings that are allowed on a command line, and the others."""
    secrets = {key: value for key, value in settings.items() if is_secret(key)}
    return {key: value for key, value in settings.items() if key not in secrets}, secrets


def _kubernetes(spark: SparkSettings, slots: int, pod: Pod) -> dict[str, str]:
    """Return the settings of client mode: the driver is this process, and its executors are pods that it asks for."""
    cores = max(1, int(spark.conf.get("spark.executor.cores", "1")))
    settings = {
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(-(-slots // cores)),
        # Each slot is a Python process beside the JVM: as much again as the JVM's heap for each of them.
        "spark.executor.memoryOverheadFactor": str(float(cores)),
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104  # the pod's own network
        # Else executors get the address above, at which they find only themselves.
        "spark.kubernetes.executor.useDriverPodIP": "false",
        "spark.driver.port": "7078",
        "spark.driver.blockManager.port": "7079",
        # Executors need pods alone. So the driver's Role lets it see and delete no config map, Service or volume claim.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    }
    if pod.namespace:
        settings["spark.kubernetes.namespace"] = pod.namespace
    if pod.name:
        # Its executors then belong to the driver's pod: Kubernetes removes them with it, however it ends.
        settings["spark.kubernetes.driver.pod.name"] = pod.name
    return settings


def executors_python(settings: Mapping[str, str], own: str) -> str:
    """Return the Python that forks the slots.

    It is `spark.pyspark.python`, else the one in a packed environment (`spark.archives=FILE#NAME`). Else it is the path
    of the driver's `own`, which an image common to both has.
    """
    if chosen := settings.get("spark.pyspark.python"):
        return chosen
    if not is_local(settings["spark.master"]) and (named := _ARCHIVE_NAME.search(settings.get("spark.archives", ""))):
        return f"./{named[1]}/bin/python"
    return own


PROPERTIES = "LOCKSTEP_SPARK_PROPERTIES"
"""The variable by which the image's entrypoint names the file that the submitter has written."""

ADDRESS = "SPARK_DRIVER_BIND_ADDRESS"
"""The variable in which the submitter puts the pod's address for the driver."""

API = "k8s://https://kubernetes.default.svc"

_SUBMITTER_PREFIXES = ("spark.submit.", "spark.kubernetes.operator.", "spark.kubernetes.driver.podTemplate")
_SUBMITTER_KEYS = frozenset(
    {
        "spark.master",  # with variables in it, which only a shell would fill in
        "spark.kubernetes.submitInDriver",  # it asks Spark to start our process, which is already there
        "spark.kubernetes.resource.type",
        "spark.jars",
    }
)


class InvalidSubmission(ValueError):
    """The error of submitted settings that cannot be used. The message names the setting and what to do."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The settings that a submitter wrote to `path`, and the pod's address; "": it gave none."""

    path: Path
    conf: Mapping[str, str] = field(repr=False)
    address: str = ""


def submitted_to(environment: Mapping[str, str]) -> Submission | None:
    """Return what this driver was submitted with; None if it was not submitted. Raises InvalidSubmission."""
    if not (named := environment.get(PROPERTIES)):
        return None
    path = Path(named)
    try:
        text = read_properties(read_content(path), path)
    except OSError as exc:
        raise InvalidSubmission(
            f"{path}, Spark's settings from the submitter of this driver, cannot be read: {exc.strerror}"
        ) from exc
    if text.problems:
        raise InvalidSubmission(f"{path}: {text.problems[0]}")
    conf = {entry.key: entry.value for entry in text.entries}
    return Submission(path, conf, environment.get(ADDRESS, ""))


def join_conf(spark: SparkSettings, submission: Submission) -> SparkSettings:
    """Return the file's settings with the submitted ones, and Kubernetes as the master.

    Settings that only serve the submitter are left out. Raises InvalidSubmission if the file's master is not
    Kubernetes, if both have different values, or if a pinned setting has another value.
    """
    if spark.master and not spark.master.startswith("k8s://"):
        raise InvalidSubmission(
            f"{MASTER} is {spark.master}, but this driver was submitted to Kubernetes ({submission.path}): "
            "leave the key out"
        )
    submitted = {
        key: value
        for key, value in submission.conf.items()
        if key.startswith("spark.") and key not in _SUBMITTER_KEYS and not key.startswith(_SUBMITTER_PREFIXES)
    }
    for key, value in submitted.items():
        try:
            check_conf(key, value)
        except BadValue as exc:
            raise InvalidSubmission(f"{key}, with which this driver was submitted, {exc}") from exc
    disputed = [key for key, value in submitted.items() if spark.conf.get(key, value) != value]
    if disputed:
        key = min(disputed)
        raise InvalidSubmission(
            f"{CONF_PREFIX}{key} and what this driver was submitted with ({submission.path}) say different things: "
            "say it in one place only"
        )
    if submission.address:
        # Executors find the driver by its pod's address. The name that was submitted is that of a Service, which knows
        # no pod before it is ready, and slots start before that.
        submitted |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), submission.address)
        submitted["spark.kubernetes.executor.useDriverPodIP"] = "true"
    return replace(spark, master=spark.master or API, conf={**submitted, **spark.conf})
