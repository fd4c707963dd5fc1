"""A YAML text with a Strimzi resource as the lines of an mm2.properties file.

As `kubectl get -o yaml` prints it: `status` and what Kubernetes adds to `metadata` are accepted. A text may hold other
resources beside it (users, secrets, clusters): they are noted and left alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lockstep_config.our_keys import TRACING
from lockstep_config.problems import Problem
from lockstep_config.properties import PropertiesText
from lockstep_config.strimzi.fields import Finding, check_fields
from lockstep_config.strimzi.lines import Lines, Part
from lockstep_config.strimzi.logging import add_logging
from lockstep_config.strimzi.mirror_maker import add_mirror_maker
from lockstep_config.strimzi.mirror_maker_2 import add_mirror_maker_2
from lockstep_config.strimzi.schema import API_VERSIONS, KINDS, MIRROR_MAKER_2, VERSIONS
from lockstep_config.usual_providers import with_usual_providers
from lockstep_config.yaml_text import MapNode, Node, read_yaml

__all__ = ["read_resource"]

_ANNOTATIONS = {
    "restart-connector": "`lockstep restart FILE connector:NAME` does this",
    "restart-connector-task": "`lockstep restart FILE slot:N` does this",
    "restart-mirrormaker2-connector": "`lockstep restart FILE connector:NAME` does this",
    "restart-mirrormaker2-connector-task": "`lockstep restart FILE slot:N` does this",
    "pause-reconciliation": "no operator looks at the resource; `lockstep pause FILE` pauses what it says",
}
_ANNOTATED_BY = ("strimzi.io", "eventstreams.ibm.com")


def read_resource(data: bytes, file: Path) -> PropertiesText:
    """The one resource of the text as lines, each with the YAML path as what its author calls it; what is wrong with
    it, what is worth a warning, and what is without effect. No entries where it cannot be understood at all."""
    documents, problems = read_yaml(data, file)
    lines = Lines(file, problems=list(problems))
    ours, others = _sorted(documents, lines)
    if not ours and not lines.problems:
        lines.problem("", 0, _none_of_ours(others))
    if len(ours) > 1:
        kinds = " and ".join(f"{_text(one, 'kind')} in line {one.line}" for one in ours)
        lines.problem("kind", ours[1].line, f"is a second one: the file holds {kinds}; give each a file of its own")
    elif ours:
        _add(ours[0], lines)
    for one in others if ours else ():
        lines.note("kind", one.line, f"is {_text(one, 'kind') or 'missing'}, which is not read here")
    lines.entries = with_usual_providers(lines.entries)
    return lines.text()


def _sorted(documents: Sequence[Node], lines: Lines) -> tuple[list[MapNode], list[MapNode]]:
    ours: list[MapNode] = []
    others: list[MapNode] = []
    for document in documents:
        if not isinstance(document, MapNode):
            lines.problem("", document.line, "is no resource: it takes apiVersion, kind, metadata and spec")
            continue
        for one in _items(document):
            (ours if _text(one, "kind") in KINDS else others).append(one)
    return ours, others


def _items(document: MapNode) -> Iterator[MapNode]:
    """`kubectl get` without a name prints a List."""
    if not _text(document, "kind").endswith("List"):
        yield document
        return
    for part in Part(document, "", document.line).parts("items"):
        yield part.node


def _none_of_ours(others: Sequence[MapNode]) -> str:
    kinds = [kind for one in others if (kind := _text(one, "kind"))]
    nearest = [near for kind in kinds for near in difflib.get_close_matches(kind, list(KINDS), 1)]
    wanted = " or ".join(KINDS)
    if nearest:
        return f"has the kind {kinds[0]!r}; did you mean {nearest[0]}?"
    return f"has {', '.join(kinds)}, but no {wanted}" if kinds else f"has no kind: write {wanted}"


def _add(document: MapNode, lines: Lines) -> None:
    kind, found = _text(document, "kind"), Finding(lines.problems, lines.unused)
    root = Part(document, "", document.line)
    version = _version(root, kind, lines)
    check_fields(document, KINDS[kind], path="", version=version, file=lines.file, found=found)
    if found.chart:
        (first, line), *others = found.chart
        too = f", as {'is' if len(others) == 1 else 'are'} {', '.join(path for path, _ in others)}" if others else ""
        lines.unused.append(
            Problem(lines.file, line, first, f"is the Helm chart's{too}: lockstep run starts processes, not pods")
        )
    metadata, spec = root.part("metadata"), root.part("spec")
    _add_annotations(metadata, lines)
    if spec is None:
        return
    _add_tracing(spec, lines)
    before = len(lines.problems)
    add_logging(spec, lines)
    add = add_mirror_maker_2 if kind == MIRROR_MAKER_2 else add_mirror_maker
    add(spec, metadata.text("namespace") if metadata else "", lines)
    if "clusters" in lines.entries and not lines.entries["clusters"].value:
        # No mirror can be understood: what is wrong was told, and everything else would be told in vain.
        lines.entries.clear()
        if len(lines.problems) == before and not lines.problems:
            lines.problem("spec.mirrors", spec.line_of("mirrors"), "is empty: write at least one mirror")


def _version(root: Part, kind: str, lines: Lines) -> str:
    """The API version by which the fields are judged; the newest one, where it is wrong."""
    known = API_VERSIONS[kind]
    text = root.text("apiVersion")
    if text in known:
        return known[text]
    what = f"is {text!r}" if text else "is missing"
    lines.problem("apiVersion", root.line_of("apiVersion"), f"{what}: {kind} has {', '.join(known)}")
    version = text.rpartition("/")[2]
    return version if version in VERSIONS[kind] else VERSIONS[kind][-1]


def _add_annotations(metadata: Part | None, lines: Lines) -> None:
    annotations = metadata.part("annotations") if metadata else None
    if annotations is None:
        return
    for name in annotations.node.items:
        operator, _, what = name.partition("/")
        if operator in _ANNOTATED_BY and what in _ANNOTATIONS:
            lines.without_effect(annotations.at(name), annotations.line_of(name), _ANNOTATIONS[what])


def _add_tracing(spec: Part, lines: Lines) -> None:
    tracing = spec.part("tracing")
    if tracing is None:
        return
    path, line = tracing.at("type"), tracing.line_of("type")
    if tracing.text("type") == "opentelemetry":
        lines.add(TRACING, "opentelemetry", path, line)
    elif tracing.text("type") == "jaeger":
        lines.without_effect(path, line, "jaeger is not spoken any more, by Strimzi neither: write opentelemetry")


def _text(node: MapNode, name: str) -> str:
    return Part(node, "", node.line).text(name)
