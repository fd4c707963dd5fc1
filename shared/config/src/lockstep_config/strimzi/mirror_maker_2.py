"""`KafkaMirrorMaker2` as the lines of an mm2.properties file.

The lines have the effect that Strimzi's operator gives the resource. The target's `config` is the Connect worker's. A
source's `config` is its connection's. Each mirror has the connectors that it names. v1 has the target once and each
mirror's source in the mirror. Before v1 clusters had a list, and mirrors named them. This module is pure.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_config.keys.client_keys import CONNECTION
from lockstep_config.keys.key_types import ALIAS_OF_CLUSTER, KeyLevel
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.resolve.cells import ALIAS
from lockstep_config.strimzi.access import add_connection
from lockstep_config.strimzi.api_versions import OLD
from lockstep_config.strimzi.connectors import AliasesOf, add_connectors
from lockstep_config.strimzi.lines import SET_BY_STRIMZI, Lines, Part, Place, forbidden
from lockstep_rules.versions import NEWEST, OLDEST
from lockstep_state.names import Flow

FORBIDDEN = (
    *("ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers"),
    *("consumer.interceptor.classes", "producer.interceptor.classes"),
)
"""Prefixes of a worker's settings that Strimzi keeps for itself."""

GROUP = "mirrormaker2-cluster"
WORKER_DEFAULTS = {"group.id": GROUP, "offset.storage.topic": f"{GROUP}-offsets"}
"""The settings of Strimzi if the target's `config` has none, as far as they matter here (v1 has fields for them)."""

_WORKER_FIELDS = {
    "groupId": "group.id",
    "offsetStorageTopic": "offset.storage.topic",
    "configStorageTopic": "config.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}


@dataclass(frozen=True, slots=True)
class _Mirror:
    mirror: Part
    source: Part
    target: Part

    @property
    def flow(self) -> Flow:
        return Flow(self.source.text("alias"), self.target.text("alias"))


def add_mirror_maker_2(spec: Part, namespace: str, lines: Lines, version: str) -> None:
    """Add all lines of a resource whose fields have been judged. Its mistakes go into `lines` too."""
    in_mirrors = spec.has("target")
    # The Strimzi versions that have v1 read `target` first, and the connectors' own aliases.
    either = AliasesOf.CLUSTER if version in OLD else AliasesOf.EITHER
    aliases = AliasesOf.CONNECTOR if in_mirrors else either
    worker = spec.part("target") if in_mirrors else _connect_cluster(spec, lines)
    mirrors = _with_target(spec, worker, lines) if in_mirrors else _with_aliases(spec, worker, lines)
    mirrors = [one for one in mirrors if _is_new(one, mirrors, lines) and _has_names(one, lines)]
    clusters: dict[str, Part] = {}
    for one in mirrors:
        for cluster in (one.source, one.target):
            clusters.setdefault(cluster.text("alias"), cluster)
    where = "mirrors" if in_mirrors else "clusters"
    lines.add_line("clusters", ", ".join(clusters), spec.place(where))
    targets = {one.flow.target for one in mirrors}
    for alias, cluster in clusters.items():
        if alias not in targets:
            _add_source_config(cluster, alias, lines)
        add_connection(cluster, alias, namespace, lines)
    for alias in sorted(targets):
        if worker is not None:
            _add_worker(worker, alias, in_mirrors, lines)
    _add_version(spec, lines)
    # Without this line every pair of clusters would have heartbeats, as in an mm2.properties file.
    lines.add_line("emit.heartbeats.enabled", "false", spec.place("mirrors"))
    for one in mirrors:
        flow = one.flow
        name = f"{flow}.MirrorSourceConnector"
        lines.add_line(f"{flow}.lockstep.progress.connector", name, one.mirror)
        add_connectors(one.mirror, flow, lines, aliases)


def _with_target(spec: Part, target: Part | None, lines: Lines) -> list[_Mirror]:
    """Return the mirrors of a resource in which each has its own source and all have one target."""
    for name in ("connectCluster", "clusters"):
        if spec.has(name):
            lines.problem(spec.place(name), f"is there beside {spec.at('target')}: keep one of the two")
    found = []
    for mirror in spec.parts("mirrors"):
        for name in ("sourceCluster", "targetCluster"):
            if mirror.has(name):
                message = f"is there beside {spec.at('target')}: write the cluster into {mirror.at('source')}"
                lines.problem(mirror.place(name), message)
        source = mirror.part("source")
        if source is None:
            if not mirror.has("source"):
                lines.problem(mirror.place("source"), "is missing: it says which cluster is mirrored")
        elif target is not None:
            found.append(_Mirror(mirror, source, target))
    return found


def _with_aliases(spec: Part, worker: Part | None, lines: Lines) -> list[_Mirror]:
    """Return the mirrors of a resource in which `clusters` has all clusters and each mirror names two."""
    clusters = _clusters(spec, lines)
    found = []
    used = {worker.text("alias") if worker else ""}
    for mirror in spec.parts("mirrors"):
        source, target = (
            _named(mirror, name, clusters, spec, "name a cluster of spec.clusters", lines)
            for name in ("sourceCluster", "targetCluster")
        )
        used |= {mirror.text("sourceCluster"), mirror.text("targetCluster")}
        if source is not None and target is not None:
            one = _Mirror(mirror, source, target)
            if _is_target(one, worker, lines):
                found.append(one)
    for alias, cluster in clusters.items():
        if alias not in used:
            lines.note(cluster, f"is the cluster {alias!r}, which no mirror names")
    return found


def _clusters(spec: Part, lines: Lines) -> dict[str, Part]:
    clusters: dict[str, Part] = {}
    for cluster in spec.parts("clusters"):
        alias = cluster.text("alias")
        if alias in clusters:
            first = clusters[alias].at("alias")
            lines.problem(cluster.place("alias"), f"is {alias!r}, as {first} is already")
        elif alias:
            clusters[alias] = cluster
    if not spec.has("clusters"):
        lines.problem(spec.place("clusters"), "is missing: list the clusters, each with alias and bootstrapServers")
    return clusters


def _named(part: Part, name: str, clusters: dict[str, Part], spec: Part, what: str, lines: Lines) -> Part | None:
    """Return the cluster that a field names; `what` is the message if it names none."""
    alias = part.text(name)
    if not alias:
        lines.problem(part.place(name), f"is missing: {what}")
    elif clusters and alias not in clusters:
        nearest = difflib.get_close_matches(alias, list(clusters), 1)
        instead = f": did you mean {nearest[0]!r}?" if nearest else ""
        message = f"is {alias!r}, which is not in {spec.at('clusters')} ({', '.join(clusters)})"
        lines.problem(part.place(name), message + instead)
    return clusters.get(alias)


def _connect_cluster(spec: Part, lines: Lines) -> Part | None:
    clusters = {cluster.text("alias"): cluster for cluster in spec.parts("clusters")}
    return _named(spec, "connectCluster", clusters, spec, "name the alias of the mirrors' target", lines)


def _is_target(one: _Mirror, worker: Part | None, lines: Lines) -> bool:
    """Return whether a mirror's target is the cluster of Connect's worker, which is the cluster it writes to."""
    if worker is None:
        return True
    connect, target = worker.text("alias"), one.target.text("alias")
    servers = [part.text("bootstrapServers") for part in (worker, one.target)]
    if connect == target or servers[0] == servers[1]:
        return True
    message = (
        f"is {target!r}, but spec.connectCluster is {connect!r}: Kafka Connect writes to one cluster, so it must be "
        "the target of every mirror. Write a resource for each other target"
    )
    lines.problem(one.mirror.place("targetCluster"), message)
    return False


def _is_new(one: _Mirror, mirrors: Sequence[_Mirror], lines: Lines) -> bool:
    first = next(other for other in mirrors if other.flow == one.flow)
    if first is one or not one.flow.source:
        return True
    message = f"mirrors {one.flow} again, after {first.mirror.path} in line {first.mirror.line}: keep one"
    lines.problem(one.mirror, message)
    return False


def _has_names(one: _Mirror, lines: Lines) -> bool:
    wrong = False
    for cluster in (one.source, one.target):
        alias = cluster.text("alias")
        if alias and not ALIAS.fullmatch(alias):
            message = (
                f"is {alias!r}: an alias may hold letters, digits, '_' and '-' only, for topics are named after it"
            )
            if all((p.key, p.message) != (cluster.at("alias"), message) for p in lines.problems):
                lines.problem(cluster.place("alias"), message)
        wrong = wrong or not alias or not ALIAS.fullmatch(alias)
    if not wrong and one.flow.source == one.flow.target:
        lines.problem(one.mirror, f"leads from {one.flow.source} to itself: it needs two clusters")
        return False
    return not wrong


def _add_source_config(cluster: Part, alias: str, lines: Lines) -> None:
    """Add the lines of a source's `config`.

    Strimzi hands it to the connectors as `source.cluster.KEY`, above what `tls` and `authentication` say. Of these
    keys MM2 reads only connection properties.
    """
    for one in cluster.settings():
        if one.key in CONNECTION or one.key == ALIAS_OF_CLUSTER:
            lines.add_line(f"{alias}.{one.key}", one.value, one)
        elif one.key in KEYS and KeyLevel.CLUSTER in KEYS[one.key].scopes:
            lines.without_effect(one, "it is a setting of Kafka Connect, which has the target's config only")
        else:
            of_client = one.key.startswith(("consumer.", "producer.", "admin."))
            where = "sourceConnector.config" if of_client else "a connector's config"
            lines.without_effect(one, f"of a source's config only its connection counts: write it into {where}")


def _add_worker(worker: Part, alias: str, in_mirrors: bool, lines: Lines) -> None:
    """Add the lines of the target's `config`, which is Kafka Connect's own."""
    for one in worker.settings():
        key = one.key
        if forbidden(key, FORBIDDEN):
            lines.note(one, SET_BY_STRIMZI)
        elif key == "config.providers" or key.startswith("config.providers."):
            lines.add_line(key, one.value, one)
        elif key.startswith(("consumer.", "admin.")):
            lines.without_effect(one, "MirrorMaker's clients are its connectors': write it into a connector's config")
        elif key in KEYS and KeyLevel.CLUSTER not in KEYS[key].scopes:
            lines.without_effect(one, "Kafka Connect does not read it: write it into a connector's config")
        else:
            lines.add_line(f"{alias}.{key}", one.value, one)
    if in_mirrors:
        _add_worker_fields(worker, alias, lines)
        return
    for key, default in WORKER_DEFAULTS.items():
        lines.add_line(f"{alias}.{key}", default, Place(worker.in_config(key), worker.line))


def _add_worker_fields(worker: Part, alias: str, lines: Lines) -> None:
    """Add the lines of v1's fields, which count before the target's `config`."""
    for field, key in _WORKER_FIELDS.items():
        value, written = worker.text(field), lines.entries.get(f"{alias}.{key}")
        if not value:
            continue
        if written is not None:
            lines.without_effect(Place(written.written, written.line), f"{worker.at(field)} counts")
            del lines.entries[f"{alias}.{key}"]
        lines.add_line(f"{alias}.{key}", value, worker.place(field))


def _add_version(spec: Part, lines: Lines) -> None:
    version = spec.text("version")
    if not version:
        return
    rules, why = _nearest_rules(version)
    place, leaf = spec.place("version"), spec.leaf("version")
    if leaf is not None and isinstance(leaf.value, float) and str(leaf.value) != version:
        lines.problem(place, f"is the number {version}, which to YAML is {leaf.value}: put it in quotes")
    if why:
        lines.note(place, why)
    lines.add_line("lockstep.mm2.version", rules, place)


def _nearest_rules(version: str) -> tuple[str, str]:
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts[:2]):
        return version, ""  # the check of the line says what a version looks like
    at = int(parts[0]), int(parts[1])
    for bound, is_beyond, word in ((OLDEST, at < OLDEST, "oldest"), (NEWEST, at > NEWEST, "newest")):
        if is_beyond:
            known = f"{bound[0]}.{bound[1]}"
            return known, f"is {version!r}: the rules of {known} hold, the {word} that are known here"
    return version, ""
