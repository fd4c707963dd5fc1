"""What several lines of a flow must agree on. Pure; what does not fit goes into `Findings`."""

from __future__ import annotations

import re

from lockstep_config.findings import Findings
from lockstep_config.layering import Layers
from lockstep_config.model import DataPlaneSettings
from lockstep_config.reader import Reader
from lockstep_config.spark import MASTER, check_together
from lockstep_config.values import BadValue
from lockstep_protocol.policy import ReplicationPolicy, keeps_names

__all__ = ["check_agreements"]

_LEGAL_IN_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


def check_agreements(
    layers: Layers, of: Reader, plane: DataPlaneSettings, policy: ReplicationPolicy, findings: Findings
) -> None:
    """Everything about one flow."""
    if plane.enabled:
        _check_offset_syncs(of, findings)
        _check_checkpoints(of, findings)
    _check_separator(of, policy, findings)
    _check_recompress(of, plane, findings)
    _check_exactly_once(of, plane, findings)
    _check_spark(layers, plane, findings)


def _check_recompress(of: Reader, plane: DataPlaneSettings, findings: Findings) -> None:
    found = of.found("lockstep.recompress")
    if found and plane.compression.recompress and plane.compression_type is None:
        findings.note(
            found.entry,
            f"is true, but no compression.type of the producer on {of.flow.target} says into what: batches pass as "
            "they are",
        )


def _check_exactly_once(of: Reader, plane: DataPlaneSettings, findings: Findings) -> None:
    found = of.found("exactly.once.support")
    if not (found and plane.enabled and of.choice("exactly.once.support") == "required"):
        return
    lacking = []
    if not plane.exactly_once:
        lacking.append(f"{of.flow.target}.exactly.once.source.support=enabled")
    if plane.isolation_level != "read_committed":
        lacking.append(f"{of.flow.source}.consumer.isolation.level=read_committed")
    if lacking:
        findings.problem(found.entry, f"is required, so {of.flow} needs {' and '.join(lacking)}")


def _check_spark(layers: Layers, plane: DataPlaneSettings, findings: Findings) -> None:
    try:
        check_together(plane.spark.master, plane.spark.conf)
    except BadValue as exc:
        findings.problem(layers.top[MASTER], str(exc))


def _check_offset_syncs(of: Reader, findings: Findings) -> None:
    """KIP-1031: who writes no offset syncs must not say where they go (`mm2.md` §5.2)."""
    if of.boolean("emit.offset-syncs.enabled"):
        return
    for key in ("offset-syncs.topic.replication.factor", "offset-syncs.topic.location"):
        found = of.found(key)
        if found:
            findings.problem(
                found.entry, f"is set, but {of.flow} writes no offset syncs (emit.offset-syncs.enabled=false)"
            )
    off = of.found("emit.offset-syncs.enabled")
    if off and of.boolean("emit.checkpoints.enabled"):
        findings.note(
            off.entry, f"is false, so {of.flow} has no checkpoints: set emit.checkpoints.enabled=false to say so"
        )


def _check_checkpoints(of: Reader, findings: Findings) -> None:
    """MM2 refuses a checkpoint connector that writes none (`mm2.md` §7 no. 32); here the rest of the flow goes on."""
    off = of.found("emit.checkpoints.enabled")
    if off is None or of.boolean("emit.checkpoints.enabled"):
        return
    unmoved = " and moves no group, although sync.group.offsets.enabled is true"
    findings.note(
        off.entry,
        f"is false, so {of.flow} has no checkpoints{unmoved if of.boolean('sync.group.offsets.enabled') else ''}",
    )


def _check_separator(of: Reader, policy: ReplicationPolicy, findings: Findings) -> None:
    found = of.found("replication.policy.separator")
    separator = found.value.strip() if found else "."
    if found is None or _LEGAL_IN_TOPIC.fullmatch(separator):
        return
    if separator:
        message = f"is {found.value!r}, which a topic's name cannot hold: use letters, digits, '.', '_', '-'"
        findings.problem(found.entry, message)
    elif not keeps_names(policy):
        message = "is empty, and topics get an alias before their names: the two could not be told apart again"
        findings.problem(found.entry, f"{message}; write a separator, or a policy that keeps the names")
