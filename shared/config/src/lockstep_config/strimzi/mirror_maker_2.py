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
    part: Part
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
    mirrors = [mirror for mirror in mirrors if _is_new(mirror, mirrors, lines) and _has_names(mirror, lines)]
    clusters: dict[str, Part] = {}
    for mirror in mirrors:
        for cluster in (mirror.source, mirror.target):
            clusters.setdefault(cluster.text("alias"), cluster)
    lines.add_line("clusters", ", ".join(clusters), spec.place("mirrors" if in_mirrors else "clusters"))
    targets = {mirror.flow.target for mirror in mirrors}
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
    for mirror in mirrors:
        flow = mirror.flow
        name = f"{flow}.MirrorSourceConnector"
        lines.add_line(f"{flow}.lockstep.progress.connector", name, mirror.part)
        add_connectors(mirror.part, flow, lines, aliases)


def _with_target(spec: Part, target: Part | None, lines: Lines) -> list[_Mirror]:
    """Return the mirrors of a resource in which each has its own source and all have one target."""
    for name in ("connectCluster", "clusters"):
        if spec.has(name):
            lines.problem(spec.place(name), f"is there beside {spec.path_of('target')}: keep one of the two")
    mirrors = []
    for mirror in spec.parts("mirrors"):
        for name in ("sourceCluster", "targetCluster"):
            if mirror.has(name):
                message = f"is there beside {spec.path_of('target')}: write the cluster into {mirror.path_of('source')}"
                lines.problem(mirror.place(name), message)
        source = mirror.part("source")
        if source is None:
            if not mirror.has("source"):
                lines.problem(mirror.place("source"), "is missing: it says which cluster is mirrored")
        elif target is not None:
            mirrors.append(_Mirror(mirror, source, target))
    return mirrors


def _with_aliases(spec: Part, worker: Part | None, lines: Lines) -> list[_Mirror]:
    """Return the mirrors of a resource in which `clusters` has all clusters and each mirror names two."""
    clusters = _clusters(spec, lines)
    mirrors = []
    used = {worker.text("alias") if worker else ""}
    for mirror in spec.parts("mirrors"):
        source, target = (
            _named(mirror, name, clusters, spec, "name a cluster of spec.clusters", lines)
            for name in ("sourceCluster", "targetCluster")
        )
        used |= {mirror.text("sourceCluster"), mirror.text("targetCluster")}
        if source is not None and target is not None:
            candidate = _Mirror(mirror, source, target)
            if _is_target(candidate, worker, lines):
                mirrors.append(candidate)
    for alias, cluster in clusters.items():
        if alias not in used:
            lines.note(cluster, f"is the cluster {alias!r}, which no mirror names")
    return mirrors


def _clusters(spec: Part, lines: Lines) -> dict[str, Part]:
    clusters: dict[str, Part] = {}
    for cluster in spec.parts("clusters"):
        alias = cluster.text("alias")
        if alias in clusters:
            lines.problem(cluster.place("alias"), f"is {alias!r}, as {clusters[alias].path_of('alias')} is already")
        elif alias:
            clusters[alias] = cluster
    if not spec.has("clusters"):
        lines.problem(spec.place("clusters"), "is missing: list the clusters, each with alias and bootstrapServers")
    return clusters


def _named(part: Part, name: str, clusters: dict[str, Part], spec: Part, hint: str, lines: Lines) -> Part | None:
    """Return the cluster that a field names; `hint` says what to write if it names none."""
    alias = part.text(name)
    if not alias:
        lines.problem(part.place(name), f"is missing: {hint}")
    elif clusters and alias not in clusters:
        nearest = difflib.get_close_matches(alias, list(clusters), 1)
        instead = f": did you mean {nearest[0]!r}?" if nearest else ""
        message = f"is {alias!r}, which is not in {spec.path_of('clusters')} ({', '.join(clusters)})"
        lines.problem(part.place(name), message + instead)
    return clusters.get(alias)


def _connect_cluster(spec: Part, lines: Lines) -> Part | None:
    clusters = {cluster.text("alias"): cluster for cluster in spec.parts("clusters")}
    return _named(spec, "connectCluster", clusters, spec, "name the alias of the mirrors' target", lines)


def _is_target(mirror: _Mirror, worker: Part | None, lines: Lines) -> bool:
    """Return whether a mirror's target is the cluster of Connect's worker, which is the cluster it writes to."""
    if worker is None:
        return True
    connect, target = worker.text("alias"), mirror.target.text("alias")
    servers = [part.text("bootstrapServers") for part in (worker, mirror.target)]
    if connect == target or servers[0] == servers[1]:
        return True
    message = (
        f"is {target!r}, but spec.connectCluster is {connect!r}: Kafka Connect writes to one cluster, so it must be "
        "the target of every mirror. Write a resource for each other target"
    )
    lines.problem(mirror.part.place("targetCluster"), message)
    return False


def _is_new(mirror: _Mirror, mirrors: Sequence[_Mirror], lines: Lines) -> bool:
    earlier = next(other for other in mirrors if other.flow == mirror.flow)
    if earlier is mirror or not mirror.flow.source:
        return True
    message = f"mirrors {mirror.flow} again, after {earlier.part.path} in line {earlier.part.line}: keep one"
    lines.problem(mirror.part, message)
    return False


def _has_names(mirror: _Mirror, lines: Lines) -> bool:
    wrong = False
    for cluster in (mirror.source, mirror.target):
        alias = cluster.text("alias")
        if alias and not ALIAS.fullmatch(alias):
            message = (
                f"is {alias!r}: an alias may hold letters, digits, '_' and '-' only, for topics are named after it"
            )
            if all((p.key, p.message) != (cluster.path_of("alias"), message) for p in lines.problems):
                lines.problem(cluster.place("alias"), message)
        wrong = wrong or not alias or not ALIAS.fullmatch(alias)
    if not wrong and mirror.flow.source == mirror.flow.target:
        lines.problem(mirror.part, f"leads from {mirror.flow.source} to itself: it needs two clusters")
        return False
    return not wrong


def _add_source_config(cluster: Part, alias: str, lines: Lines) -> None:
    """Add the lines of a source's `config`.

    Strimzi hands it to the connectors as `source.cluster.KEY`, above what `tls` and `authentication` say. Of these
    keys MM2 reads only connection properties.
    """
    for setting in cluster.settings():
        if setting.key in CONNECTION or setting.key == ALIAS_OF_CLUSTER:
            lines.add_line(f"{alias}.{setting.key}", setting.value, setting)
        elif setting.key in KEYS and KeyLevel.CLUSTER in KEYS[setting.key].levels:
            lines.without_effect(setting, "it is a setting of Kafka Connect, which has the target's config only")
        else:
            of_client = setting.key.startswith(("consumer.", "producer.", "admin."))
            place = "sourceConnector.config" if of_client else "a connector's config"
            lines.without_effect(setting, f"of a source's config only its connection counts: write it into {place}")


def _add_worker(worker: Part, alias: str, in_mirrors: bool, lines: Lines) -> None:
    """Add the lines of the target's `config`, which is Kafka Connect's own."""
    for setting in worker.settings():
        key = setting.key
        if forbidden(key, FORBIDDEN):
            lines.note(setting, SET_BY_STRIMZI)
        elif key == "config.providers" or key.startswith("config.providers."):
            lines.add_line(key, setting.value, setting)
        elif key.startswith(("consumer.", "admin.")):
            lines.without_effect(
                setting, "MirrorMaker's clients are its connectors': write it into a connector's config"
            )
        elif key in KEYS and KeyLevel.CLUSTER not in KEYS[key].levels:
            lines.without_effect(setting, "Kafka Connect does not read it: write it into a connector's config")
        else:
            lines.add_line(f"{alias}.{key}", setting.value, setting)
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
            lines.without_effect(Place(written.written, written.line), f"{worker.path_of(field)} counts")
            del lines.entries[f"{alias}.{key}"]
        lines.add_line(f"{alias}.{key}", value, worker.place(field))


def _add_version(spec: Part, lines: Lines) -> None:
    version = spec.text("version")
    if not version:
        return
    rules, remark = _nearest_rules(version)
    place, leaf = spec.place("version"), spec.leaf("version")
    if leaf is not None and isinstance(leaf.value, float) and str(leaf.value) != version:
        lines.problem(place, f"is the number {version}, which to YAML is {leaf.value}: put it in quotes")
    if remark:
        lines.note(place, remark)
    lines.add_line("lockstep.mm2.version", rules, place)


def _nearest_rules(version: str) -> tuple[str, str]:
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts[:2]):
        return version, ""  # the check of the line says what a version looks like
    requested = int(parts[0]), int(parts[1])
    for bound, is_beyond, word in ((OLDEST, requested < OLDEST, "oldest"), (NEWEST, requested > NEWEST, "newest")):
        if is_beyond:
            nearest = f"{bound[0]}.{bound[1]}"
            return nearest, f"is {version!r}: the rules of {nearest} hold, the {word} that are known here"
    return version, ""
