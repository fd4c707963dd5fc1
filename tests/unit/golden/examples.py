"""Values for the golden records: made from the schemas, so that every field has one."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def filled(schema: Schema) -> dict[str, Any]:
    """Every field with a value of its own, without the version. Texts are not ASCII."""
    fields = {name: one for name, one in schema["properties"].items() if name != "version"}
    return {name: _value(name, one, number) for number, (name, one) in enumerate(fields.items(), 1)}


def least(schema: Schema) -> dict[str, Any]:
    """The fields that have to be there."""
    every = filled(schema)
    return {name: every[name] for name in schema["required"] if name != "version"}


def _value(name: str, schema: Schema, number: int) -> Any:
    match schema["type"]:
        case "string":
            return f"{name}-ö"
        case "integer":
            return 1000 + number
        case "boolean":
            return True
        case "object" if "properties" in schema:
            return filled(schema)
        case "object" if "additionalProperties" in schema:
            return {"text": "ö", "value": number}
        case "object":
            return {"field": [number, None, "ö"]}
        case "array" if "prefixItems" in schema:
            return tuple(_value(name, one, 10 * number + place) for place, one in enumerate(schema["prefixItems"]))
        case "array":
            return tuple(_value(name, schema["items"], 10 * number + place) for place in range(2))
        case other:
            raise ValueError(f"no example of a field of type {other}")


STATUS_ROWS: list[tuple[str, Mapping[str, Any]]] = [
    ("topic", {"source_topic": "t", "target_topic": "A.t", "partitions": 2, "target_partitions": 2, "note": "n"}),
    (
        "partition",
        {"topic": "t", "partition": 0, "upstream": 9, "source_end": 20, "slot": 0, "at_ms": 1_000_000, "given_up": 1},
    ),
    (
        "partition",
        {"topic": "t", "partition": 1, "phase": "halted", "reason": "r", "case": "refused", "slot": 0, "at_ms": 5},
    ),
    ("assignment", {"slot": 0, "partitions": (("t", 0), ("t", 1))}),
    ("slot", {"slot": 0, "phase": "started", "partitions": 2, "held_bytes": 7, "at_ms": 1_000_000}),
    ("group", {"group": "g", "phase": "translated", "exact": 1, "behind": (("A.t", 0, 7),), "held": "in-use"}),
    ("source-groups", {"share": 0, "phase": "read", "read_ms": 1_000_000, "unselected": 3}),
    (
        "acl",
        {"phase": "in-sync", "copied": 2, "left_out": 1, "left_out_for": (("write", 1),), "notes": ("n",)},
    ),
    ("flow", {"source": "A", "target": "B", "phase": "beating"}),
    ("cluster", {"alias": "B", "cluster_id": "i", "product": "Kafka 2.8", "lacks": ("DescribeQuorum 1",)}),
    ("wanted", {"scope": "topic:t", "phase": "paused"}),
    ("leader", {"service": "topic-sync", "instance": "host-1", "at_ms": 3}),
    ("restarts", {"owner": "data-plane", "subject": "slot:0", "count": 3, "phase": "failed", "reason": "r"}),
]
"""A flow with a line in every section of `lockstep status`."""
