"""A YAML or JSON text with a Strimzi resource, or with connectors, as the lines of an mm2.properties file.

It may be as `kubectl get -o yaml` prints it: `status` and what Kubernetes adds to `metadata` are accepted. A text may
hold other resources beside it (users, secrets, clusters): they are noted and left alone.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstep_config.keys.lockstep_keys import TRACING
from lockstep_config.keys.log_levels import LEVEL_KEY, LEVELS, LOGGING_FILE_KEY, log4j_levels
from lockstep_config.strimzi.api_versions import API_VERSIONS, BETA, IBM_GROUPS, MIRROR_MAKER_2, STRIMZI, V1, VERSIONS
from lockstep_config.strimzi.connect import (
    ConnectorResource,
    add_connect,
    connectors_by_name,
    is_worker,
    nearest_class,
    recognise_connector,
)
from lockstep_config.strimzi.fields import check_config, check_fields
from lockstep_config.strimzi.lines import Lines, Part, Place
from lockstep_config.strimzi.mirror_maker import add_mirror_maker
from lockstep_config.strimzi.mirror_maker_2 import add_mirror_maker_2
from lockstep_config.strimzi.recognised import YAML_SUFFIXES, begins_as_json
from lockstep_config.strimzi.schema import CHART_VALUES, KAFKA_CONNECTOR, KINDS
from lockstep_config.text.config_errors import Problem
from lockstep_config.text.config_providers import with_usual_providers
from lockstep_config.text.json_nodes import read_json
from lockstep_config.text.properties import Entry, PropertiesText
from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode, Node, read_yaml

_ANNOTATIONS = {
    "restart-connector": "`lockstep restart FILE connector:NAME` does this",
    "restart-connector-task": "`lockstep restart FILE slot:N` does this",
    "restart-mirrormaker2-connector": "`lockstep restart FILE connector:NAME` does this",
    "restart-mirrormaker2-connector-task": "`lockstep restart FILE slot:N` does this",
    "pause-reconciliation": "no operator reads the resource; `lockstep pause FILE` pauses what it describes",
}
NO_RESOURCE = "is no resource: it takes apiVersion, kind, metadata and spec, or a connector's name and config"
_OF_EVERY_RESOURCE = ("apiVersion", "kind", "metadata", "spec")
_ANNOTATED_BY = ("strimzi.io", *IBM_GROUPS)
_LOG4J_KEY = "log4j.properties"
"""The key of a ConfigMap that is named without one, as before v1beta2."""


def read_resource(data: bytes, file: Path, document: str = "") -> PropertiesText:
    """Return the one resource of the text as lines, with its mistakes, remarks and lines without effect.

    Each line has the YAML path as the key that its author knows. There are no entries if the text cannot be
    understood at all.

    Args:
        data: The text.
        file: Its file.
        document: The name of the resource that is meant, if the text has several.
    """
    documents, problems, form = _documents(data, file)
    lines = Lines(file, problems=list(problems))
    _add_documents(documents, lines, form, document)
    lines.entries = with_usual_providers(lines.entries)
    return lines.text()


def find_resource(data: bytes, file: Path, document: str = "") -> MapNode | None:
    """Return the one resource of a text that `read_resource` took without a problem; None if it has connectors."""
    contents = _sorted(_documents(data, file)[0], Lines(file))
    return next((resource.node for resource in _meant(contents.resources, document)), None)


def _documents(data: bytes, file: Path) -> tuple[tuple[Node, ...], tuple[Problem, ...], str]:
    if file.suffix.lower() == ".json" or (begins_as_json(data) and file.suffix.lower() not in YAML_SUFFIXES):
        return *read_json(data, file), "JSON"
    return *read_yaml(data, file), "YAML"


def read_connector(text: PropertiesText, file: Path) -> PropertiesText:
    """Return the lines of the properties file of one connector, as `connect-standalone` takes it."""
    items: dict[str, Node] = {entry.key: Leaf(entry.value, entry.value, entry.line) for entry in text.entries}
    lines = Lines(file, problems=list(text.problems), notes=list(text.notes))
    _add_documents([MapNode(items, {entry.key: entry.line for entry in text.entries}, 1)], lines, "a connector")
    return replace(lines.text(), entries=tuple(with_usual_providers(lines.entries).values()))


def _add_documents(documents: Sequence[Node], lines: Lines, form: str, document: str = "") -> None:
    """Add the lines of a text's documents, which are written in `form`."""
    contents = _sorted(documents, lines)
    chosen = _meant(contents.resources, document)
    if not contents.resources and not contents.connectors and not lines.problems:
        lines.problem(Place("", 0), _none_of_ours((*contents.others, *contents.workers), form))
    if document and not chosen and not lines.problems:
        names = ", ".join(_names(contents.resources)) or "none"
        message = f"no {' or '.join(KINDS)} is called {document!r}: there is {names}"
        lines.problem(Place("metadata.name", 0), message)
    elif len(chosen) > 1:
        lines.problem(Place("kind", chosen[1].line), _several(chosen))
    elif chosen and contents.connectors:
        message = f"is there beside {contents.connectors[0].shown}: keep one of the two"
        lines.problem(Place("kind", chosen[0].line), message)
    elif chosen:
        _add_resource(chosen[0], lines)
    elif contents.connectors:
        add_connect(contents.connectors, contents.workers, lines)
    unread = (*contents.others, *(part for part in contents.resources if part not in chosen))
    for part in unread if chosen or contents.connectors else ():
        java = _java(part)
        if near := nearest_class(java):
            message = f"is {java!r}, which there is not; did you mean {near}?"
            lines.problem(Place("connector.class", part.line), message)
        else:
            kind = java or part.text("kind") or "missing"
            field_name = "connector.class" if java and not part.has("kind") else "kind"
            lines.note(Place(field_name, part.line), f"is {kind}, which is not read here")


def _meant(resources: Sequence[Part], document: str) -> list[Part]:
    return [part for part in resources if not document or document in (part.text("metadata", "name"), _full_name(part))]


def _several(resources: Sequence[Part]) -> str:
    names = _names(resources)
    shown = zip(resources, names, strict=True)
    kinds = " and ".join(f"{part.text('kind')} {name or 'without a name'} in line {part.line}" for part, name in shown)
    message = f"is a second one: the file holds {kinds}; give each a file of its own"
    if len(set(names) - {""}) < len(names):
        return message
    return f"{message} (lockstep config convert --to resource --document {names[0]} prints one)"


def _names(resources: Sequence[Part]) -> list[str]:
    """Return the name of each, with the namespace if the name alone is not unique."""
    names = [resource.text("metadata", "name") for resource in resources]
    return [_full_name(part) if names.count(name) > 1 else name for part, name in zip(resources, names, strict=True)]


def _full_name(resource: Part) -> str:
    namespace, name = resource.text("metadata", "namespace"), resource.text("metadata", "name")
    return f"{namespace}/{name}" if namespace else name


@dataclass(frozen=True, slots=True)
class _Documents:
    resources: list[Part] = field(default_factory=list)
    connectors: list[ConnectorResource] = field(default_factory=list)
    workers: list[Part] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)


def _sorted(documents: Sequence[Node], lines: Lines) -> _Documents:
    contents = _Documents()
    for document in documents:
        for part in _items(document, lines):
            if part.text("kind") in KINDS:
                contents.resources.append(Part.root(part.node))
            elif (connector := recognise_connector(part)) is not None:
                _check_connector(part, connector, lines)
                contents.connectors.append(connector)
            elif is_worker(part):
                contents.workers.append(part)
            else:
                contents.others.append(Part.root(part.node))
    return contents


def _items(document: Node, lines: Lines) -> Iterator[Part]:
    """Yield the mappings that a document holds: itself, what it lists, or connectors by their names."""
    if isinstance(document, ListNode):
        for index, item in enumerate(document.items):
            if isinstance(item, MapNode):
                yield Part(item, f"[{index}]", item.line)
            else:
                lines.problem(Place("", item.line), NO_RESOURCE)
        return
    if not isinstance(document, MapNode):
        lines.problem(Place("", document.line), NO_RESOURCE)
        return
    root = Part.root(document)
    if root.text("kind").endswith("List"):  # `kubectl get` without a name prints one
        yield from (Part.root(part.node) for part in root.parts("items"))
    else:
        yield from list(connectors_by_name(root)) or [root]


def _check_connector(root: Part, connector: ConnectorResource, lines: Lines) -> None:
    if connector.is_strimzi:
        check_fields(root, KAFKA_CONNECTOR, V1, lines)
    elif (config := connector.part.part("config")) is not None:
        check_config(replace(config, path=connector.part.in_config("").removesuffix(".")), lines)


def _none_of_ours(others: Sequence[Part], form: str) -> str:
    for part in others:
        if near := nearest_class(_java(part)):
            return f"has the connector.class {_java(part)!r}; did you mean {near}?"
    if form == "JSON" and not any(part.text("kind") for part in others):
        return f"is {form}, but no connector of MirrorMaker 2 (by its connector.class) and no KafkaMirrorMaker2"
    kinds = [kind for part in others if (kind := part.text("kind"))]
    nearest = [near for kind in kinds for near in difflib.get_close_matches(kind, list(KINDS), 1)]
    wanted = " or ".join(KINDS)
    if nearest:
        return f"has the kind {kinds[0]!r}; did you mean {nearest[0]}?"
    if files := [name for part in others if part.text("kind") == "ConfigMap" for name in _property_files(part)]:
        return f"is a ConfigMap: write the text of its {' and of '.join(files)} into a file, and name that file"
    if not kinds and others and not any(part.has(name) for part in others for name in _OF_EVERY_RESOURCE):
        return NO_RESOURCE
    return f"has {', '.join(kinds)}, but no {wanted}" if kinds else f"has no kind: write {wanted}"


def _property_files(config_map: Part) -> list[str]:
    """Return the names of the property files in a ConfigMap."""
    data = config_map.part("data")
    return [name for name in data.node.items if name.endswith(".properties")] if data else []


def _add_resource(root: Part, lines: Lines) -> None:
    kind = root.text("kind")
    version = _version(root, kind, lines)
    own = {name: value for name, value in root.node.items.items() if name not in CHART_VALUES}
    chart = check_fields(replace(root, node=replace(root.node, items=own)), KINDS[kind], version, lines)
    chart += [root.place(name) for name in root.node.items if name in CHART_VALUES]
    if chart:
        paths = [place.path for place in chart[1:]]
        too = f", as {'is' if len(paths) == 1 else 'are'} {', '.join(paths)}" if paths else ""
        lines.without_effect(chart[0], "lockstep run starts processes, not pods", f"is the Helm chart's{too}")
    _add_annotations(root.part("metadata"), lines)
    spec, namespace = root.part("spec"), root.text("metadata", "namespace")
    if spec is None:
        return
    _add_tracing(spec, lines)
    before = len(lines.problems)
    _add_logging(spec, lines)
    if kind == MIRROR_MAKER_2:
        add_mirror_maker_2(spec, namespace, lines, version)
    else:
        add_mirror_maker(spec, namespace, lines)
    if "clusters" in lines.entries and not lines.entries["clusters"].value:
        # No mirror can be understood: its mistake was reported, and all others would be useless.
        lines.entries.clear()
        if len(lines.problems) == before and not lines.problems:
            lines.problem(spec.place("mirrors"), "is empty: write at least one mirror")
        return
    for setting in root.settings("settings"):  # `settings` of the chart's values file, which the services read too
        lines.entries[setting.key] = Entry(setting.key, setting.value, setting.line, written=setting.path)


def _version(root: Part, kind: str, lines: Lines) -> str:
    """Return the API version by which the fields are judged; if it is wrong, that of the resource's form."""
    versions = API_VERSIONS[kind]
    text = root.text("apiVersion")
    if text in versions:
        return versions[text]
    if not isinstance(root.node.items.get("apiVersion"), MapNode | ListNode):  # the check of the fields reports it
        fault = f"is {text!r}" if text else "is missing"
        allowed = ", ".join(f"{STRIMZI}/{version}" for version in VERSIONS[kind])
        message = f"{fault}: {kind} has {allowed}, and the same of {' and '.join(IBM_GROUPS)}"
        lines.problem(root.place("apiVersion"), message)
    version, spec = text.rpartition("/")[2], root.part("spec")
    if version in VERSIONS[kind]:
        return version
    return V1 if V1 in VERSIONS[kind] and spec is not None and spec.has("target") else BETA


def _add_annotations(metadata: Part | None, lines: Lines) -> None:
    annotations = metadata.part("annotations") if metadata else None
    if annotations is None:
        return
    for name in annotations.node.items:
        operator, _, annotation = name.partition("/")
        if operator in _ANNOTATED_BY and annotation in _ANNOTATIONS:
            lines.without_effect(annotations.place(name), _ANNOTATIONS[annotation])


def _add_tracing(spec: Part, lines: Lines) -> None:
    tracing = spec.part("tracing")
    kind = tracing.text("type") if tracing else ""
    if tracing is not None and kind == "opentelemetry":
        lines.add_line(TRACING, kind, tracing.place("type"))
    elif tracing is not None and kind == "jaeger":
        reason = "jaeger is not spoken any more, by Strimzi neither: write opentelemetry"
        lines.without_effect(tracing.place("type"), reason)


def _add_logging(spec: Part, lines: Lines) -> None:
    """Add the log levels of `spec.logging`, or the file as which a ConfigMap is mounted."""
    logging = spec.part("logging")
    if logging is None:
        return
    if logging.text("type") == "external":
        _add_external(logging, lines)
        return
    loggers = {setting.key: setting for setting in logging.settings("loggers")}
    levels, unknown, wrong = log4j_levels({key: setting.value for key, setting in loggers.items()})
    for key in wrong:
        lines.problem(loggers[key], f"is {loggers[key].value!r}: it takes {', '.join(LEVELS)}")
    place = logging.place("loggers")
    if levels.root:
        lines.add_line(LEVEL_KEY, levels.root, place)
    for service, level in levels.by_service.items():
        lines.add_line(f"{LEVEL_KEY}.{service}", level, place)
    if unknown:
        lines.without_effect(place, f"no logger here is called {' or '.join(unknown)}")


def _add_external(logging: Part, lines: Lines) -> None:
    reference = logging.part("valueFrom")
    reference = reference.part("configMapKeyRef") if reference else None
    name, key = (reference.text("name"), reference.text("key")) if reference else (logging.text("name"), _LOG4J_KEY)
    if name and key:
        lines.add_line(LOGGING_FILE_KEY, f"{name}/{key}", logging)
    else:
        message = "names no ConfigMap: write valueFrom.configMapKeyRef with name and key"
        lines.problem(logging, message)


def _java(part: Part) -> str:
    """Return the class of a connector; empty for other resources."""
    if part.has("spec") and part.text("kind") == "KafkaConnector":
        return part.text("spec", "class")
    return part.text("config", "connector.class") or part.text("connector.class")
