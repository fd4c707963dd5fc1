"""The master that the slots run on, and Spark's own settings that a file may choose (`kafka-wire.md` §6).

This module is pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockstep_config.text.values import BadValue, integer

MASTER = "lockstep.spark.master"
CONF_PREFIX = "lockstep.spark.conf."
"""The prefix of lines with Spark's settings. Spark's own key follows it."""

SECRET = "spark.authenticate.secret"  # noqa: S105 a key, no secret
"""The secret that both sides of a connection between Spark's parts know.

Spark makes it itself on this machine and on Kubernetes.
"""

ENCRYPTION = "spark.network.crypto.enabled"

IMAGE = "spark.kubernetes.container.image"

_LOCAL = re.compile(r"local(\[(\d+|\*)(,1)?\])?")
_STANDALONE = re.compile(r"spark://[^\s,/:]+:\d+(,[^\s,/:]+:\d+)*")
_KUBERNETES = re.compile(r"k8s://\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Spark's master and its settings.

    `master` has Spark's own form; empty means a local one with a core for each slot. `conf` has Spark's keys and
    values.
    """

    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Pinned:
    """A setting of Spark's that a file cannot change. If `value` is None it stays unset."""

    value: str | None
    reason: str


_ONE_RESTART_PATH = "a slot that ended is started again by the data plane's driver alone"

PINNED: Mapping[str, Pinned] = MappingProxyType(
    {
        "spark.task.maxFailures": Pinned("1", _ONE_RESTART_PATH),
        "spark.excludeOnFailure.enabled": Pinned("false", _ONE_RESTART_PATH),
        "spark.speculation": Pinned("false", "a slot does not end, so Spark would start a second one beside it"),
        "spark.dynamicAllocation.enabled": Pinned(
            "false", "slots are never idle; how many executors there are follows from how many slots"
        ),
        "spark.scheduler.mode": Pinned("FAIR", "with FIFO the slots of one flow keep those of another waiting"),
        "spark.locality.wait": Pinned("0", "any place is as good as another, and waiting for one is a pause"),
        "spark.task.cpus": Pinned("1", "a slot is one Python process with one thread at work"),
        "spark.task.reaper.enabled": Pinned(
            "false", "it ends an executor, and every slot in it, for the sake of one task"
        ),
        "spark.python.use.daemon": Pinned("true", "slots are forked from a process that has everything loaded"),
        "spark.python.daemon.module": Pinned("lockstep_data_plane.spark.pyspark_daemon", "it is what forks the slots"),
        "spark.python.worker.module": Pinned(None, "the daemon starts its own"),
        "spark.python.worker.reuse": Pinned(
            "false", "a process that waits for the next slot may be frozen, and nobody would notice before it has one"
        ),
        "spark.python.worker.idleTimeoutSeconds": Pinned(
            "0", "a slot says nothing to Spark until it ends, which would be taken for idling"
        ),
        "spark.python.task.killTimeout": Pinned(
            "2s", "a frozen slot is gone within seconds; until then nothing it sends counts twice"
        ),
        "spark.executor.pyspark.memory": Pinned(
            None,
            "it bounds address space, not memory, and ends slots that use little: "
            "spark.executor.memoryOverhead is what to raise",
        ),
        "spark.authenticate": Pinned("true", "Spark's ports would take Java objects from everybody who reaches them"),
        "spark.submit.deployMode": Pinned(None, "the driver is the data plane's own process: client mode"),
        "spark.master": Pinned(None, f"{MASTER} names the master"),
        "spark.remote": Pinned(None, "Spark Connect has no job groups and ends long tasks"),
        "spark.api.mode": Pinned(None, "Spark Connect has no job groups and ends long tasks"),
    }
)
"""Fixed settings of Spark, with reasons. They go before the file, the environment and `spark-defaults.conf`."""


def parse_master(text: str) -> str:
    """Return the master.

    Raises:
        BadValue: Slots cannot run on it; the sentence says what it may be.
    """
    master = text.strip()
    if any(form.fullmatch(master) for form in (_LOCAL, _STANDALONE, _KUBERNETES)):
        return master
    if master.startswith("sc://"):
        raise BadValue(
            "is a Spark Connect server, which has no job groups and ends long tasks: name the cluster's own master"
        )
    if master.startswith("local["):
        raise BadValue(f"is {master!r}: a local master is local, local[CORES] or local[*]; {_ONE_RESTART_PATH}")
    if master == "yarn":
        raise BadValue("is 'yarn', on which slots were never tried: use spark://HOST:PORT or k8s://https://HOST:PORT")
    raise BadValue(f"is {master!r}: it takes local[CORES], spark://HOST:PORT or k8s://https://HOST:PORT")


def check_conf(key: str, value: str) -> None:
    """Check one of Spark's settings.

    Raises:
        BadValue: `key` is no setting of Spark, or is fixed to something else.
    """
    if not key.startswith("spark."):
        raise BadValue(f"names no setting of Spark: write {CONF_PREFIX}spark....")
    if key == "spark.executor.cores":
        integer(value, 1)  # the number of executors is computed with it
    pinned = PINNED.get(key)
    if pinned is not None and value.strip() != pinned.value:
        stays = "stays unset" if pinned.value is None else f"is always {pinned.value}"
        raise BadValue(f"cannot be set: {key} {stays}, for {pinned.reason}")


def is_local(master: str) -> bool:
    """Return whether the slots of this master run on the machine of the driver."""
    return master.startswith("local")


def check_together(master: str, conf: Mapping[str, str]) -> None:
    """Check that `conf` has the settings that a master needs.

    Raises:
        BadValue: A setting is missing, or has another value.
    """
    if master.startswith("k8s://") and IMAGE not in conf:
        raise BadValue(f"needs {CONF_PREFIX}{IMAGE}: the image of the pods in which the slots run")
    if master.startswith("spark://") and not conf.get(SECRET, "").strip():
        raise BadValue(
            f"needs a secret, or everybody who reaches Spark's ports could run code in the slots. Write {CONF_PREFIX}"
            f"{SECRET} = ${{file:/run/secrets/spark.properties:secret}} here, and the same {SECRET}, with "
            "spark.authenticate true, into spark-defaults.conf of the master and of each worker"
        )
    if master and not is_local(master) and conf.get(ENCRYPTION, "true").strip().lower() != "true":
        raise BadValue(
            f"needs {ENCRYPTION}=true: the slots get the passwords of both clusters over the network; remove the line "
            f"{CONF_PREFIX}{ENCRYPTION}"
        )
