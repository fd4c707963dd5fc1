"""The rows about mirrored topics, and the events of their changes. Pure."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lockstep_kafka.common.admin_types import TopicDescription
from lockstep_rules.topic_plan import LeftOutTopic
from lockstep_runtime.state.failing_parts import describe_missing
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic

TOPIC_PHASES = ("mirrored", "failing", "creating", "failed", "deleted", "excluded", "left-out")
"""A row's phases, and `failing` for a mirrored topic with an error."""

TARGET_CONFIGS = (
    *("cleanup.policy", "compression.type", "delete.retention.ms"),
    *("max.message.bytes", "message.timestamp.type", "min.insync.replicas"),
)
"""Configs of a target topic that the data plane and `lockstep status` need, in the order of a row."""


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """An event to append: `kind` and `level` as in `lockstep_state.event_kinds`. A `cause` is in the detail."""

    kind: str
    subject: str
    text: str
    detail: Mapping[str, Any]
    level: int | None = None


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    """A selected topic in one round.

    `target` None: it does not exist (yet). `failure`: the reason of the last failed attempt.
    """

    source: TopicDescription
    remote: str
    target: TopicDescription | None
    configs: Mapping[str, str] | None
    """Effective configs of the target topic; None: not read in this round."""
    failure: Reason = NO_REASON
    configs_failure: Reason = NO_REASON
    """The reason why the topic's configs could not be read or set."""
    note: str = ""
    keeps_count: bool = False
    """The target may have any number of partitions."""

    @property
    def behind(self) -> bool:
        """The target has to be created, or to get more partitions."""
        return self.target is None or not (self.keeps_count or self.target.partitions >= self.source.partitions)

    @property
    def copied(self) -> int:
        """Partitions of the source that can be copied, or could if the target existed."""
        if self.target is None or self.keeps_count:
            return self.source.partitions
        return min(self.source.partitions, self.target.partitions)


def mirrored_row(topic: SelectedTopic, before: MirroredTopic | None) -> MirroredTopic | None:
    """Return the row of a selected topic, or None until the target is listed again.

    It is `failed` only while there is no target topic. If adding partitions fails, the existing ones stay mirrored
    (`partitions` counts them, `missing` the others), and `cause` has the error. It also has it if only the configs
    fail.
    """
    source, target = topic.source, topic.target
    config_cause = ReasonCode.TOPIC_CONFIGS.because(topic.configs_failure) if topic.configs_failure else NO_REASON
    if topic.behind and not topic.failure:
        return None
    if topic.configs is not None:
        configs = tuple((name, topic.configs[name]) for name in TARGET_CONFIGS if name in topic.configs)
    else:
        configs = () if before is None else before.target_configs
    return MirroredTopic(
        source_topic=source.name,
        target_topic=topic.remote,
        source_topic_id=source.topic_id,
        target_topic_id="" if target is None else target.topic_id,
        partitions=topic.copied,
        target_partitions=0 if target is None else target.partitions,
        phase="failed" if target is None else "mirrored",
        cause=topic.failure if topic.behind else config_cause,
        missing=0 if target is None else source.partitions - topic.copied,
        target_configs=configs,
        note=topic.note,
        earlier_names=_earlier_names(before, topic.remote),
    )


def creating_row(topic: str, remote: str, before: MirroredTopic | None) -> MirroredTopic:
    """Return the row of a topic whose copy is about to be created.

    It gives the name to this topic. The opposite flow may bring a topic of that name to the source at once.
    """
    row = MirroredTopic(source_topic=topic, target_topic=remote) if before is None else before
    return replace(
        row,
        target_topic=remote,
        target_topic_id="",
        phase="creating",
        missing=0,
        note="",
        original="",
        earlier_names=_earlier_names(before, remote),
    )


def _earlier_names(before: MirroredTopic | None, remote: str) -> tuple[str, ...]:
    """Return the other names on the target that the topic had."""
    if before is None:
        return ()
    names = dict.fromkeys((*before.earlier_names, before.target_topic))
    return tuple(name for name in names if name not in ("", remote))


def left_out_row(topic: str, rule: LeftOutTopic, before: MirroredTopic | None) -> MirroredTopic:
    """Return the row of a topic that is selected, but whose name says that it is a copy from the target."""
    row = MirroredTopic(source_topic=topic, target_topic="") if before is None else before
    return replace(row, phase="left-out", cause=NO_REASON, missing=0, note=rule.rule, original=rule.original)


def left_out(row: MirroredTopic, *, missed: bool) -> TopicEvent:
    """Return the event of a topic that is left out, a warning if nothing on the target shows that it is a copy."""
    level = logging.WARNING if missed else None
    return TopicEvent("TopicLeftOut", row.source_topic, f"{row.source_topic}: {row.note}", {"rule": row.note}, level)


def unseen_row(topic: str, remote: str, cause: Reason, before: MirroredTopic | None) -> MirroredTopic:
    """Return the row of a selected topic that could not be described on one side. A mirrored topic stays mirrored."""
    if before is None or before.phase != "mirrored":
        return MirroredTopic(
            source_topic=topic,
            target_topic=remote,
            phase="failed",
            cause=cause,
            earlier_names=_earlier_names(before, remote),
        )
    return replace(before, cause=cause)


def gone_rows(rows: Iterable[MirroredTopic], selected: Iterable[str], on_source: Iterable[str]) -> list[MirroredTopic]:
    """Return the changed rows of topics that are no longer `selected`: `deleted` (not on the source) or `excluded`."""
    selected_names, present = set(selected), set(on_source)
    changed = []
    for row in rows:
        if row.source_topic in selected_names:
            continue
        phase = "excluded" if row.source_topic in present else "deleted"
        if row.phase != phase:
            changed.append(replace(row, phase=phase, cause=NO_REASON, missing=0))
    return changed


def topic_events(before: MirroredTopic | None, after: MirroredTopic) -> list[TopicEvent]:
    """Return the events of a changed row. The code that creates and grows topics reports these itself."""
    name, pair = after.source_topic, f"{after.source_topic} -> {after.target_topic}"
    events = []
    if after.cause and (before is None or (before.cause, before.missing) != (after.cause, after.missing)):
        missing = after.missing_partitions
        detail = {"cause": after.cause, "partitions": list(missing)} if missing else {"cause": after.cause}
        events.append(TopicEvent("TopicFailed", name, f"{pair}: {_not_copied(missing)}{after.reason}", detail))
    if after.phase == "deleted" and before is not None and before.phase != "deleted":
        events.append(TopicEvent("TopicDeleted", name, f"{name} on the source; {after.target_topic} stays", {}))
    if after.phase == "excluded" and before is not None and before.phase != "excluded":
        events.append(
            TopicEvent("TopicExcluded", name, f"{name} is no longer selected; {after.target_topic} stays", {})
        )
    if after.note and after.phase == "mirrored" and (before is None or before.note != after.note):
        events.append(TopicEvent("TopicNoted", name, f"{pair}: {after.note}", {"note": after.note}))
    if before is not None and before.phase == "excluded" and after.phase in ("mirrored", "failed"):
        text = f"{name} is selected again; {after.target_topic} goes on where it was left"
        events.append(TopicEvent("TopicIncluded", name, text, {}))
    if before is not None:
        for side, recorded_id, present_id in (
            ("source", before.source_topic_id, after.source_topic_id),
            ("target", before.target_topic_id, after.target_topic_id),
        ):
            if recorded_id and present_id and recorded_id != present_id:
                topic = name if side == "source" else after.target_topic
                text = f"{topic} on the {side}: id {recorded_id} is now {present_id}"
                events.append(
                    TopicEvent("TopicRecreated", name, text, {"side": side, "before": recorded_id, "after": present_id})
                )
    return events


def _not_copied(missing: range) -> str:
    if not missing:
        return ""
    numbers = "that number" if len(missing) == 1 else "these numbers"
    return f"{describe_missing(missing)}, the target has none of {numbers}: "


def count_by_phase(rows: Iterable[MirroredTopic]) -> Mapping[str, int]:
    """Count the topics in each of `TOPIC_PHASES`."""
    counts = dict.fromkeys(TOPIC_PHASES, 0)
    for row in rows:
        phase = "failing" if row.phase == "mirrored" and row.cause else row.phase
        if phase in counts:  # a newer release may know other phases
            counts[phase] += 1
    return counts
