"""The tables of `acls-needed.md` from the declaration: `python -m tools.docs.permissions` writes them anew.

They are between the lines that name them; the text around them is written by hand."""

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lockstep_config import load
from lockstep_config.credentials.permissions import Grant, grant_command, source_grants, target_grants
from lockstep_state.names import Flow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "acls-needed.md"
BLOCK = re.compile(r"(<!-- (\w+) of (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

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


def filled(page: str) -> str:
    """The page with its tables as the declaration is now. Raises KeyError for a table of nobody."""
    sides = _declared()
    return BLOCK.sub(lambda block: f"{block[1]}{SHAPES[block[2]](sides[block[3]], block[3])}", page)


def _declared() -> Mapping[str, Sequence[Grant]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mm2.properties")
        file.write_text(EVERYTHING)
        settings = load(file, {}).flow(Flow("A", "B"))
    return {"source": source_grants(settings), "target": target_grants(settings)}


def _table(grants: Sequence[Grant], _: str) -> str:
    lines = ["", "| resource | name | operation | needed, for |", "|---|---|---|---|"]
    for (resource, name, pattern, feature), operations in _merged(grants).items():
        shown = "" if resource == "cluster" else f"`{name}`" + (" (prefix)" if pattern == "prefixed" else "")
        lines.append(f"| {resource} | {shown} | {', '.join(operations)} | {feature} |")
    return "\n".join([*lines, "", ""])


def _merged(grants: Sequence[Grant]) -> Mapping[tuple[str, str, str, str], list[str]]:
    """Operations that one feature needs on one resource are one line."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for one in grants:
        found.setdefault((one.resource, one.name, one.pattern, one.feature), []).append(one.operation)
    return found


def _commands(grants: Sequence[Grant], side: str) -> str:
    bootstrap = {"source": "a:9092", "target": "b:9092"}[side]
    lines = [grant_command(one, "User:lockstep", bootstrap) for one in grants]
    return "\n".join(["", "```sh", *lines, "```", "", ""])


def _yaml(grants: Sequence[Grant], side: str) -> str:
    lines = ["", "```yaml", "apiVersion: kafka.strimzi.io/v1", "kind: KafkaUser", "metadata:"]
    lines += [f"  name: lockstep-{side}", "  labels:", f"    strimzi.io/cluster: my-{side}-cluster", "spec:"]
    lines += ["  authentication:", "    type: tls", "  authorization:", "    type: simple", "    acls:"]
    by_resource: dict[tuple[str, str, str], list[Grant]] = {}
    for one in grants:
        by_resource.setdefault((one.resource, one.name, one.pattern), []).append(one)
    for (resource, name, pattern), ours in by_resource.items():
        lines += [f"      - resource:  # {one}" for one in ["; ".join(dict.fromkeys(g.feature for g in ours))]]
        lines += [f"          type: {YAML_TYPES.get(resource, resource)}"]
        if resource != "cluster":
            lines += [f'          name: "{name}"']
            lines += ["          patternType: prefix"] if pattern == "prefixed" else []
        lines += ["        operations:", *(f"          - {g.operation}" for g in ours)]
    return "\n".join([*lines, "```", "", ""])


SHAPES: Mapping[str, Callable[[Sequence[Grant], str], str]] = {
    "permissions": _table,
    "commands": _commands,
    "yaml": _yaml,
}

if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
