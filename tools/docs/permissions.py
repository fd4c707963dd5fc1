"""The tables, commands and resources of `acls-needed.md`, from the declared permissions."""

import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lockstep_config import load
from lockstep_config.credentials.permissions import Grant, source_grants, target_grants
from lockstep_state.names import Flow
from tools.docs.pages import DOCS, grouped, table

PAGE = DOCS / "reference" / "acls-needed.md"

EVERYTHING = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders.*
A->B.sync.group.offsets.enabled = true
A->B.lockstep.on.refused = quarantine
B.exactly.once.source.support = enabled
"""
"""A flow that uses every feature which needs a permission of its own."""

YAML_TYPES = {"transactional-id": "transactionalId"}


def blocks() -> Mapping[str, str]:
    """Return each shape of the permissions on each side."""
    sides = _declared().items()
    return {f"{name} of {side}": shape(grants, side) for name, shape in SHAPES.items() for side, grants in sides}


def _declared() -> Mapping[str, Sequence[Grant]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mm2.properties")
        file.write_text(EVERYTHING)
        settings = load(file, {}).flow(Flow("A", "B"))
    return {"source": source_grants(settings), "target": target_grants(settings)}


def _table(grants: Sequence[Grant], _: str) -> str:
    rows = (
        (resource, ", ".join(names), operations, feature)
        for (resource, operations, feature), names in _merged(grants).items()
    )
    return table("resource | name | operation | needed, for", rows)


def _merged(grants: Sequence[Grant]) -> Mapping[tuple[str, str, str], list[str]]:
    """Return the names by resource, operations and feature. Resources that need the same operations share a line."""
    operations = grouped(((grant.resource, _named(grant), grant.feature), grant.operation) for grant in grants)
    return grouped(
        ((resource, ", ".join(allowed), feature), name) for (resource, name, feature), allowed in operations.items()
    )


def _named(grant: Grant) -> str:
    return "" if grant.resource == "cluster" else f"`{grant.name}`" + " (prefix)" * (grant.pattern == "prefixed")


def _by_resource(grants: Sequence[Grant]) -> Mapping[tuple[str, str, str], list[str]]:
    """Return the operations on each resource."""
    return grouped(((grant.resource, grant.name, grant.pattern), grant.operation) for grant in grants)


def _commands(grants: Sequence[Grant], side: str) -> str:
    """Return a command for all resources of one kind that need the same operations."""
    names = grouped(
        ((resource, pattern, tuple(sorted(operations))), name)
        for (resource, name, pattern), operations in _by_resource(grants).items()
    )
    bootstrap = {"source": "a:9092", "target": "b:9092"}[side]
    lines = []
    for (resource, pattern, allowed), named in names.items():
        words = ["kafka-acls", "--bootstrap-server", bootstrap, "--add", "--allow-principal", "User:lockstep"]
        words += [word for operation in allowed for word in ("--operation", operation)]
        words += [word for name in named for word in (f"--{resource}", *([] if resource == "cluster" else [name]))]
        words += ["--resource-pattern-type", "prefixed"] if pattern == "prefixed" else []
        lines.append(shlex.join(words))
    return "\n".join(["```sh", *lines, "```"])


def _yaml(grants: Sequence[Grant], side: str) -> str:
    lines = ["```yaml", "apiVersion: kafka.strimzi.io/v1", "kind: KafkaUser", "metadata:"]
    lines += [f"  name: lockstep-{side}", "  labels:", f"    strimzi.io/cluster: my-{side}-cluster", "spec:"]
    lines += ["  authentication:", "    type: tls", "  authorization:", "    type: simple", "    acls:"]
    for (resource, name, pattern), operations in _by_resource(grants).items():
        named = "" if resource == "cluster" else f', name: "{name}"'
        prefix = ", patternType: prefix" if pattern == "prefixed" else ""
        lines += [f"      - resource: {{type: {YAML_TYPES.get(resource, resource)}{named}{prefix}}}"]
        lines += [f"        operations: [{', '.join(operations)}]"]
    return "\n".join([*lines, "```"])


SHAPES: Mapping[str, Callable[[Sequence[Grant], str], str]] = {
    "permissions": _table,
    "commands": _commands,
    "yaml": _yaml,
}
