"""A legacy flow: a flow in the place of a MirrorMaker 1 (`docs/guides/migrate-from-mm1.md`).

`lockstep.legacy.group` makes a flow a legacy one. Features that MirrorMaker 1 lacks are then off unless the file
turns them on. Topics keep their names, and the first copy begins at the end, as a consumer without positions does.
This module is pure.
"""

from collections.abc import Mapping, Sequence

from lockstep_config.flow.model import FlowSettings, LegacySettings
from lockstep_config.flow.reader import Reader
from lockstep_config.keys.lockstep_keys import LEGACY_ABORT, LEGACY_COMMIT_EVERY, LEGACY_GROUP, LEGACY_PARTITIONING
from lockstep_config.keys.mm2_keys import IDENTITY_POLICIES
from lockstep_config.resolve import precedence
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_state.names import Flow

RESET = "latest"
"""The `auto.offset.reset` of a Java consumer that does not set it. MirrorMaker 2 sets earliest."""

LEGACY_DEFAULTS: Mapping[str, str] = {
    "replication.policy.class": IDENTITY_POLICIES[1],
    "tasks.max": "1",
    "topics.exclude": "",
    "replication.factor": "-1",
    "heartbeats.replication.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.offset-syncs.enabled": "false",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
}
"""Defaults of a legacy flow that are not MirrorMaker 2's."""

_ONLY_THERE = (LEGACY_PARTITIONING, LEGACY_ABORT, LEGACY_COMMIT_EVERY)


def legacy_defaults(layers: Layers, flow: Flow) -> Mapping[str, str]:
    """Return the defaults of this flow that are not those of the tables; none unless it is a legacy flow.

    Checkpoints need offset syncs. If the flow goes on after a send failure, refused records go to quarantine.
    """
    if not _is_legacy(layers, flow):
        return {}
    defaults = dict(LEGACY_DEFAULTS)
    checkpoints = precedence.connector(layers, flow, "emit.checkpoints.enabled")
    if checkpoints is not None and checkpoints.value:
        defaults["emit.offset-syncs.enabled"] = "true"
    abort = precedence.connector(layers, flow, LEGACY_ABORT)
    if abort is not None and not abort.value:
        defaults["lockstep.on.refused"] = "quarantine"
    return defaults


def legacy_settings(reader: Reader) -> LegacySettings | None:
    """Return the settings of a legacy flow; None if the flow is no legacy flow."""
    if not _is_legacy(reader.layers, reader.flow):
        return None
    return reader.settings(LegacySettings, group=reader.value(LEGACY_GROUP))


def check_legacy(reader: Reader, findings: Diagnostics) -> None:
    """Check that the legacy lines of one flow agree with its other lines."""
    if not _is_legacy(reader.layers, reader.flow):
        for key in _ONLY_THERE:
            line = reader.layers.flow_lines(reader.flow).get(key)
            if line is not None:
                findings.without_effect(line.entry, f"{reader.flow} is no legacy flow: {LEGACY_GROUP} makes it one")
        return
    if reader.value(LEGACY_PARTITIONING) == "key":
        _check_by_key(reader, findings)
    policy = reader.entry("replication.policy.class")
    if policy is not None and policy.value.strip() not in IDENTITY_POLICIES:
        findings.problem(
            policy,
            f"is {policy.value.strip()!r}, but {reader.flow} is a legacy flow ({LEGACY_GROUP}), whose topics keep "
            f"their names: remove this line, or set {reader.flow}.replication.policy.class={IDENTITY_POLICIES[1]}",
        )
    refused = reader.entry("lockstep.on.refused")
    if refused is not None and reader.value(LEGACY_ABORT) and "quarantine" in refused.value:
        findings.problem(
            refused,
            f"puts what the target refuses into quarantine and goes on, but {reader.flow} is to stop then: "
            f"set {LEGACY_ABORT}=false, or remove this line",
        )


def _check_by_key(reader: Reader, findings: Diagnostics) -> None:
    """Refuse offset translation if keys choose the partitions.

    An offset of the source has no certain place on the target then.
    """
    for key in ("emit.checkpoints.enabled", "emit.offset-syncs.enabled"):
        entry = reader.entry(key)
        if entry is not None and reader.value(key):
            findings.problem(
                entry,
                f"is true, but with {LEGACY_PARTITIONING}=key an offset of {reader.flow.source} has no single "
                f"offset on {reader.flow.target}: remove this line, or set {LEGACY_PARTITIONING}=preserve",
            )


def check_legacy_groups(flows: Sequence[FlowSettings], findings: Diagnostics, layers: Layers) -> None:
    """Refuse two flows whose positions are those of one group on one cluster.

    Each would take the other's positions for a reset, for ever.
    """
    owners: dict[tuple[str, str], Flow] = {}
    for settings in flows:
        legacy = settings.data_plane.legacy
        if legacy is None or not settings.enabled:
            continue
        owner = owners.setdefault((settings.flow.source, legacy.group), settings.flow)
        cell = precedence.connector(layers, settings.flow, LEGACY_GROUP)
        if owner != settings.flow and cell is not None:
            findings.problem(
                cell.entry,
                f"is {legacy.group!r} for {owner} and for {settings.flow}: a group "
                f"on {settings.flow.source} has the positions of one flow only; give each a group of its own",
            )


def _is_legacy(layers: Layers, flow: Flow) -> bool:
    group = precedence.connector(layers, flow, LEGACY_GROUP)
    return group is not None and bool(group.value)
