"""Lines that are right and still do not do what their author may think.

A line beside them counts, or no flow goes that way. None is a mistake. This module is pure.
"""

from collections.abc import Iterable, Sequence

from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.resolve import precedence
from lockstep_config.resolve.client_lines import does_nothing
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.resolve.validate import OF_EVERY_CLIENT, OF_RECORDS
from lockstep_rules.filters import NameFilter
from lockstep_state.names import Flow

OF_READING = frozenset(
    name for name, key in CLIENT["consumer"].items() if key.records and key.librdkafka and name not in OF_EVERY_CLIENT
)
"""Properties of the consumer that people set for what is mirrored."""


def remark_on_lines(layers: Layers, flows: Sequence[FlowSettings], findings: Diagnostics) -> None:
    """Report all ineffective lines of a file, and a file whose flows do not run."""
    for settings in flows:
        _report_shadowed(layers, settings.flow, findings)
    enabled = [settings for settings in flows if settings.enabled]
    for settings in enabled:
        _note_beaten(layers, settings, findings)
        _note_empty_selection(layers, settings, findings)
    if enabled:
        _note_unused_direction(layers, enabled, findings)
    elif flows:
        findings.note("", "no flow is enabled, only heartbeats run: set SOURCE->TARGET.enabled=true")
    else:
        findings.note("", "no flow runs: set SOURCE->TARGET.enabled=true")


def _report_shadowed(layers: Layers, flow: Flow, findings: Diagnostics) -> None:
    """Report lines `S->T.source.cluster.x` that have no effect because `S.x` or `x` has."""
    for side, alias in (("source", flow.source), ("target", flow.target)):
        counting = precedence.connection(layers, alias)
        for key, cell in layers.flow_lines(flow).items():
            name = key.removeprefix(f"{side}.cluster.")
            if name != key and name in counting:
                findings.without_effect(cell.entry, f"{counting[name].entry.shown} counts, as in MirrorMaker")


def _note_beaten(layers: Layers, settings: FlowSettings, findings: Diagnostics) -> None:
    """Note lines `S->T.consumer.x` that rank below `S.consumer.x`, which people expect the other way round."""
    flow, of_source = settings.flow, layers.cluster_lines(settings.flow.source)
    for key, cell in layers.flow_lines(flow).items():
        entry, above = cell.entry, of_source[key].entry if key in of_source else None
        if key.startswith("consumer.") and above is not None and above.value.strip() != entry.value.strip():
            name = key.removeprefix("consumer.")
            if does_nothing("consumer", name) or (name not in CLIENT["consumer"] and name not in CONNECTION):
                continue
            findings.note(
                entry,
                f"does not count for what {flow} reads: {above.shown} does, as in MirrorMaker; "
                f"{flow}.source.consumer.{name} goes above both",
            )


def _note_empty_selection(layers: Layers, settings: FlowSettings, findings: Diagnostics) -> None:
    reader = Reader(layers, settings.flow)
    for key, noun in (("topics", "topic"), ("groups", "group")):
        selected, without = reader.cell(key), reader.cell(f"{key}.exclude")
        if selected is None:
            continue
        included: NameFilter = selected.value
        if not included.include:
            findings.note(selected.entry, f"is empty: {settings.flow} selects no {noun}")
        repeated = sorted(set(included.include) & set(without.value.include)) if without else []
        if repeated and without:
            finding = f"has {', '.join(repeated)} as {selected.entry.shown} has"
            findings.note(without.entry, f"{finding}: what is excluded stays out")


def _note_unused_direction(layers: Layers, enabled: Iterable[FlowSettings], findings: Diagnostics) -> None:
    sources = {settings.flow.source for settings in enabled}
    targets = {settings.flow.target for settings in enabled}
    for alias in layers.clusters:
        for key, cell in layers.cluster_lines(alias).items():
            entry = cell.entry
            kind, _, name = key.partition(".")
            if kind == "producer" and alias not in targets and name in OF_RECORDS and alias in sources:
                findings.note(entry, f"is for records that are written to {alias}, and no flow that is enabled does so")
            if kind == "consumer" and alias not in sources and name in OF_READING and alias in targets:
                findings.note(entry, f"is for records that are read from {alias}, and no flow that is enabled does so")
