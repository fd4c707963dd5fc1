"""A plan as JSON, for programs and for `lockstep run --plan`. Pure, but for reading the file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.plan.rules.flow_plan import VERSION, BasisTopic, ClusterBasis, Plan


def as_body(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON document (`plan.v1.json` is its schema)."""
    return {"version": VERSION, **asdict(plan)}


def read_body(file: Path) -> dict[str, Any]:
    """Read the plan in a file.

    Raises:
        CannotUse: It is no plan of this version.
    """
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise CannotUse(f"{file} cannot be read: {exc.strerror}") from exc
    except ValueError as exc:
        raise CannotUse(f"{file} is no plan: it is not JSON; make one with lockstep plan FILE --out {file}") from exc
    if not isinstance(body, dict) or not isinstance(body.get("flows"), list) or "version" not in body:
        raise CannotUse(f"{file} is no plan: make one with lockstep plan FILE --out {file}")
    if body["version"] != VERSION:
        raise CannotUse(
            f"{file} is a plan of version {body['version']}, and this release reads version {VERSION}: make it anew"
        )
    return body


def read_basis(file: Path, body: Any) -> ClusterBasis:
    """Return what a plan relies on of a cluster.

    Raises:
        CannotUse: The value is no such part of a plan.
    """
    try:
        return ClusterBasis(
            alias=body["alias"],
            bootstrap=body["bootstrap"],
            cluster_id=body["cluster_id"],
            topics={
                name: BasisTopic(
                    topic_id=topic["topic_id"], partitions=topic["partitions"], configs=dict(topic["configs"])
                )
                for name, topic in body["topics"].items()
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise CannotUse(f"{file} is no plan that can be used: a cluster in it lacks {exc}; make it anew") from exc
