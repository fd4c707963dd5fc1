"""The record that a switch leaves: its steps with their times, positions, groups, what was lost (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_ops.formatting import count_text, in_time, utc_moment
from lockstep_ops.switch.switch_options import Allowance, allows
from lockstep_ops.switch.switch_steps import MEANINGS, Verb, lasting_effects, step_states
from lockstep_rules.offsets.verified_copy import find_verification
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Row, Switch, SwitchGroup, SwitchTopic, VerifiedPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of one switch, finished or not.

    `rows` are those of its flow. `lasting` is what an abort did not take back.
    """

    row: Switch
    flow: Flow
    rows: Mapping[str, Row]
    lasting: tuple[str, ...] = ()

    @property
    def topics(self) -> list[SwitchTopic]:
        """Return the positions that this switch wrote down."""
        return [
            row for _, row in sorted(self.rows.items()) if isinstance(row, SwitchTopic) and row.switch == self.row.id
        ]

    @property
    def lost_unknown(self) -> int:
        """Return the number of partitions of which it is not known how many records are lost."""
        return sum(missing < 0 for topic in self.topics for missing in topic.missing)

    @property
    def lost(self) -> int | None:
        """Return how many records are lost of those that the source was known to have, or None if not counted yet."""
        return None if self.row.verb == Verb.FAILOVER and not self.topics else self.row.lost

    @property
    def lost_words(self) -> str:
        """Say in words how many records are lost, and of which."""
        if self.lost is None:
            return "not counted yet"
        unknown = count_text(self.lost_unknown, "partition")
        words = count_text(self.lost, "record") + (f" known, unknown for {unknown}" if self.lost_unknown else "")
        if self.row.verb != Verb.FAILOVER:
            return words
        moment, source = _moment(self.row.source_known_ms), self.flow.source
        until = f"up to {moment}" if moment else "as far as slots had fetched it"
        return f"{words}, of what {source} had accepted {until}; what it accepted later is not counted"

    @property
    def late(self) -> int | None:
        """Return how many records came after the fence and are not copied, or None if that is not known."""
        return None if self.row.late_unknown else self.row.late

    @property
    def late_words(self) -> str:
        """Say in words how many records came after the fence and are not copied."""
        if self.late is None:
            return f"not known, because {self.flow.source} did not answer any more"
        return count_text(self.late, "record") + (" came after the fence" if self.late else "")

    @property
    def known_words(self) -> str:
        """Return a text that says up to when it was known what the source had."""
        row = self.row
        records, groups = (_moment(ms) or "a time not known" for ms in (row.source_known_ms, row.groups_known_ms))
        return f"its records up to {records}, its groups up to {groups}"

    def as_json(self) -> dict[str, Any]:
        """Return the evidence as JSON values. Times are RFC 3339, in UTC."""
        row = self.row
        return {
            "switch": row.id,
            "verb": row.verb,
            "flow": str(self.flow),
            "from": self.flow.source,
            "to": self.flow.target,
            "phase": row.phase,
            "drill": row.drill,
            "by": row.by,
            "console": row.console,
            "progress": row.progress,
            "began": _moment(row.began_ms),
            "ended": _moment(row.ended_ms),
            "seconds": _seconds(row.began_ms, row.ended_ms),
            "lost": self.lost,
            "lost_unknown_partitions": self.lost_unknown,
            "source_known_until": _moment(row.source_known_ms),
            "groups_known_until": _moment(row.groups_known_ms),
            "late": self.late,
            "cutoff": _moment(row.cutoff_ms),
            "allowed": [str(allowance) for allowance in Allowance if allows(row, allowance)],
            "only_topics": list(row.topics),
            "allowed_loss": None if row.allowed_loss < 0 else row.allowed_loss,
            "diverged": row.diverged,
            "rewound_groups": row.rewind_groups,
            "steps": [
                {
                    "step": str(step.step),
                    "state": step.state,
                    "began": _moment(step.began_ms),
                    "ended": _moment(step.ended_ms),
                    "seconds": _seconds(step.began_ms, step.ended_ms),
                    "text": step.text,
                }
                for step in step_states(row)
            ],
            "topics": [self._topic(topic) for topic in self.topics],
            "groups": [self._group(group) for group in self.groups],
            "lasting": list(self.lasting),
        }

    @property
    def groups(self) -> list[SwitchGroup]:
        """Return the groups as this switch left them."""
        return [
            row for _, row in sorted(self.rows.items()) if isinstance(row, SwitchGroup) and row.switch == self.row.id
        ]

    def _group(self, row: SwitchGroup) -> dict[str, Any]:
        return {
            "group": row.group,
            "state": row.state,
            "text": row.text,
            "read_again": row.read_again,
            "known_until": _moment(row.known_ms),
            "positions": [
                {"topic": topic, "partition": number, "source_offset": upstream, "target_offset": downstream}
                for topic, number, upstream, downstream in row.positions
            ],
        }

    def _verified(self, topic: str, number: int) -> VerifiedPartition | None:
        return find_verification(self.rows, (topic, number))

    def _verified_words(self) -> str:
        partitions = [(topic.topic, number) for topic in self.topics for number in range(len(topic.ends))]
        rows = [row for tp in partitions if (row := self._verified(*tp)) is not None]
        differences = sum(count for row in rows for _, count in row.differences) + sum(row.beyond for row in rows)
        not_verified = sum(count for row in rows for _, count in row.not_verified)
        return (
            f"{len(rows)} of {len(partitions)} partitions were compared with their source, {differences:,} "
            f"differences, {not_verified:,} records not verified"
        )

    def _verdict(self, topic: str, number: int) -> dict[str, Any] | None:
        """Return what verification knew of the copy, or None if the present copy was never compared."""
        row = self._verified(topic, number)
        if row is None:
            return None
        return {
            "verified_to": row.upstream,
            "depth": row.depth,
            "differences": sum(dict(row.differences).values()) + row.beyond,
            "not_verified": sum(dict(row.not_verified).values()),
        }

    def _topic(self, row: SwitchTopic) -> dict[str, Any]:
        return {
            "topic": row.topic,
            "target_topic": row.target_topic,
            "partitions": [
                {
                    "partition": number,
                    "source_end": None if end < 0 else end,
                    "copied_to": _value_of(row.copied, number, -1),
                    "target_end": _value_of(row.target_ends, number, -1),
                    "missing": None if (missing := _value_of(row.missing, number, 0)) < 0 else missing,
                    "missing_since": _moment(_value_of(row.since_ms, number, 0)),
                    "known_until": _moment(_value_of(row.known_ms, number, self.row.source_known_ms)),
                    "verified": self._verdict(row.topic, number),
                }
                for number, end in enumerate(row.ends)
            ],
        }

    def as_markdown(self) -> str:
        """Return the evidence as a page in Markdown."""
        row = self.row
        lines = [
            f"# {row.verb.capitalize()} {self.flow}" + (" (drill)" if row.drill else ""),
            "",
            f"- Result: {row.phase}",
            f"- Begun by: {_cell(row.by) or 'not known'}",
            f"- Began: {_moment(row.began_ms)}",
            f"- Ended: {_moment(row.ended_ms) or 'not yet'}",
            f"- Lost, of what the source was known to have: {self.lost_words}",
            f"- Known of {self.flow.source}: {self.known_words}",
            f"- Late, and not copied: {self.late_words}",
            f"- Verified: {self._verified_words()}",
            f"- Id: {row.id}",
            "",
            "## Steps",
            "",
            "| step | what | state | began | took | result |",
            "|---|---|---|---|---|---|",
        ]
        for step in step_states(row):
            lasted = in_time(step.ended_ms - step.began_ms) if step.ended_ms and step.began_ms else ""
            began = _moment(step.began_ms) or ""
            lines.append(
                f"| {step.step} | {MEANINGS[step.step]} | {step.state} | {began} | {lasted} | {_cell(step.text)} |"
            )
        heads = "| partition | on the target | source end | known up to | copied to | target end | missing | since |"
        lines += ["", "## Topics", "", heads, "|---|---|---|---|---|---|---|---|"]
        for topic in self.topics:
            for number, end in enumerate(topic.ends):
                copied, target = _value_of(topic.copied, number, -1), _value_of(topic.target_ends, number, -1)
                names = f"{topic.topic}-{number} | {topic.target_topic}-{number}"
                since = _moment(_value_of(topic.since_ms, number, 0)) or ""
                missing = _number_text(_value_of(topic.missing, number, 0))
                known_until = _moment(_value_of(topic.known_ms, number, row.source_known_ms)) or "?"
                offsets = f"{_number_text(end)} | {known_until} | {copied} | {_number_text(target)}"
                lines.append(f"| {names} | {offsets} | {missing} | {since} |")
        lines += ["", "## Groups", "", "| group | state | read again | known up to | result |", "|---|---|---|---|---|"]
        for group in self.groups:
            moment = _moment(group.known_ms) or "?"
            lines.append(
                f"| {_cell(group.group)} | {group.state} | {group.read_again} | {moment} | {_cell(group.text)} |"
            )
        if self.lasting:
            lines += ["", "## Not taken back", "", *(f"- {effect}" for effect in self.lasting)]
        return "\n".join(lines) + "\n"


def collect_evidence(row: Switch, flow: Flow, rows: Mapping[str, Row]) -> Evidence:
    """Return the evidence of a switch as it is now, from the rows of its flow."""
    lasting = tuple(lasting_effects(row)) if row.phase == "aborted" else ()
    return Evidence(row=row, flow=flow, rows=rows, lasting=lasting)


def _value_of(values: tuple[int, ...], number: int, otherwise: int) -> int:
    return values[number] if number < len(values) else otherwise


def _number_text(number: int) -> str:
    return "?" if number < 0 else str(number)


def _moment(ms: int) -> str | None:
    return utc_moment(ms) if ms else None


def _seconds(began_ms: int, ended_ms: int) -> float | None:
    return (ended_ms - began_ms) / 1000 if began_ms and ended_ms else None


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
