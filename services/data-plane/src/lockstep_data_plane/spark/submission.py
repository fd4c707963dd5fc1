"""A driver's pod that another program has made, such as the Apache Spark operator: its settings, joined with the
file's. Pure, but for `submitted_to`.

The submitter writes Spark's settings into a file beside the driver. It counts on them when it searches the
application's executors, and puts the pod's address into the environment. The process in the pod stays ours, and so does
its JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstep_config.keys.spark_settings import CONF_PREFIX, MASTER, SparkSettings, check_conf
from lockstep_config.text.files import content_of
from lockstep_config.text.properties import read_properties
from lockstep_config.text.values import BadValue

PROPERTIES = "LOCKSTEP_SPARK_PROPERTIES"
"""The variable by which the image's entrypoint names the file that the submitter has written."""

ADDRESS = "SPARK_DRIVER_BIND_ADDRESS"
"""The variable in which the submitter puts the pod's address for the driver."""

API = "k8s://https://kubernetes.default.svc"

_OF_THE_SUBMITTING = ("spark.submit.", "spark.kubernetes.operator.", "spark.kubernetes.driver.podTemplate")
_ALSO = frozenset(
    {
        "spark.master",  # with variables in it, which only a shell would fill in
        "spark.kubernetes.submitInDriver",  # it asks Spark to start our process, which is already there
        "spark.kubernetes.resource.type",
        "spark.jars",
    }
)


class InvalidSubmission(ValueError):
    """What was submitted cannot be: a sentence that names the setting and what to do."""


@dataclass(frozen=True, slots=True)
class Submission:
    """`conf`: Spark's keys and values, as the submitter wrote them to `path`; `address`: the pod's, or empty."""

    path: Path
    conf: Mapping[str, str] = field(repr=False)
    address: str = ""


def submitted_to(environment: Mapping[str, str]) -> Submission | None:
    """What this driver was submitted with; None where nobody did. Raises InvalidSubmission."""
    if not (named := environment.get(PROPERTIES)):
        return None
    path = Path(named)
    try:
        text = read_properties(content_of(path), path)
    except OSError as exc:
        raise InvalidSubmission(
            f"{path}, Spark's settings from the submitter of this driver, cannot be read: {exc.strerror}"
        ) from exc
    if text.problems:
        raise InvalidSubmission(f"{path}: {text.problems[0]}")
    conf = {entry.key: entry.value for entry in text.entries}
    return Submission(path, conf, environment.get(ADDRESS, ""))


def join_conf(spark: SparkSettings, submission: Submission) -> SparkSettings:
    """The file's settings and the submitted ones, with Kubernetes as the master. What only served the submitting is
    left out. Raises InvalidSubmission where both say different things, or one is said that is pinned."""
    if spark.master and not spark.master.startswith("k8s://"):
        raise InvalidSubmission(
            f"{MASTER} is {spark.master}, but this driver was submitted to Kubernetes ({submission.path}): "
            "leave the key out"
        )
    taken = {key: value for key, value in submission.conf.items() if _is_for_the_driver(key)}
    for key, value in taken.items():
        try:
            check_conf(key, value)
        except BadValue as exc:
            raise InvalidSubmission(f"{key}, with which this driver was submitted, {exc}") from exc
    disputed = [key for key, value in taken.items() if spark.conf.get(key, value) != value]
    if disputed:
        key = min(disputed)
        raise InvalidSubmission(
            f"{CONF_PREFIX}{key} and what this driver was submitted with ({submission.path}) say different things: "
            "say it in one place only"
        )
    at = _at(submission.address) if submission.address else {}
    return replace(spark, master=spark.master or API, conf={**taken, **at, **spark.conf})


def _at(address: str) -> dict[str, str]:
    """Executors find the driver by its pod's address. The name that was submitted is that of a Service, which knows no
    pod before it is ready, and slots start before that."""
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.kubernetes.executor.useDriverPodIP": "true",
    }


def _is_for_the_driver(key: str) -> bool:
    return key.startswith("spark.") and key not in _ALSO and not key.startswith(_OF_THE_SUBMITTING)
