"""JSON Schemas of what `lockstep plan` prints, from its dataclasses.

They are beside those of the records. Nested values are written out where they are, so that a reader needs one file."""

from typing import Any

from lockstep_ops.plan.rules.comparison import PlanComparison
from lockstep_ops.plan.rules.flow_plan import VERSION, Plan
from tools.docs.schemas import OTHER_FIELDS, document, object_schema

DOCUMENTS = {
    "plan": (Plan, "what lockstep plan prints with --output json, and writes with -o"),
    "plan-comparison": (PlanComparison, "what lockstep plan prints with --against and --output json"),
}


def generated() -> dict[str, dict[str, Any]]:
    """Return every schema of this release, by `NAME.vVERSION`."""
    return {f"{name}.v{VERSION}": _document(cls, title) for name, (cls, title) in DOCUMENTS.items()}


def _document(cls: type[Any], title: str) -> dict[str, Any]:
    made = object_schema(cls)
    return document(title, f"{made['description']}{OTHER_FIELDS}", VERSION, made["required"], made["properties"])
