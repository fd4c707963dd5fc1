"""The comparison of two configurations, by their effective settings and their plans (`--against`). Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lockstep_ops.plan.rules.changes import change_text
from lockstep_ops.plan.rules.flow_plan import VERSION, FlowPlan, Plan, treatments

THIS, OTHER = "this", "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDifference:
    """A setting that differs. A value is None if the file has no such key."""

    flow: str
    key: str
    this: str | None
    other: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """A line that only one of the two plans has."""

    flow: str
    only: str
    """`this` | `other`."""
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanComparison:
    """The differences between two configurations and their plans."""

    this: str
    """The path of the file that was given to the command."""
    other: str
    """The path of the file of `--against`."""
    settings: tuple[SettingDifference, ...]
    plan: tuple[PlanDifference, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.settings or self.plan)


def compare(this: Plan, other: Plan) -> PlanComparison:
    """Compare two plans. A flow that only one of them has differs as a whole."""
    this_flows, other_flows = ({flow.flow: flow for flow in plan.flows} for plan in (this, other))
    settings: list[SettingDifference] = []
    lines: list[PlanDifference] = []
    for name in dict.fromkeys((*this_flows, *other_flows)):
        this_flow, other_flow = this_flows.get(name), other_flows.get(name)
        if this_flow is not None and other_flow is not None:
            settings += _settings(name, this_flow.settings, other_flow.settings)
        this_lines = dict.fromkeys(_lines(this_flow))
        other_lines = dict.fromkeys(_lines(other_flow))
        lines += [PlanDifference(flow=name, only=THIS, line=line) for line in this_lines if line not in other_lines]
        lines += [PlanDifference(flow=name, only=OTHER, line=line) for line in other_lines if line not in this_lines]
    return PlanComparison(this=this.file, other=other.file, settings=tuple(settings), plan=tuple(lines))


def as_body(comparison: PlanComparison) -> dict[str, Any]:
    """Return the comparison as a JSON document (`plan-comparison.v1.json` is its schema)."""
    return {"version": VERSION, **asdict(comparison)}


def _settings(flow: str, this: Mapping[str, str], other: Mapping[str, str]) -> Iterator[SettingDifference]:
    for key in sorted(this.keys() | other.keys()):
        if this.get(key) != other.get(key):
            yield SettingDifference(flow=flow, key=key, this=this.get(key), other=other.get(key))


def _lines(flow: FlowPlan | None) -> Iterator[str]:
    """Yield the lines of a plan, without what moves by itself: offsets, ends, times."""
    if flow is None:
        return
    yield from map(change_text, flow.changes)
    for topic in flow.copy.topics:
        how = f", {', '.join(treatments(topic))}" if treatments(topic) else ""
        yield f"copy {topic.topic} to {topic.remote} from {topic.begins or 'an unknown position'}{how}"
    for group in flow.groups:
        yield f"group {group.group}: {group.fate}"
    for part in flow.held_back:
        yield f"{part.scope} is {part.wanted}"
    for hazard in flow.hazards:
        yield f"{hazard.code} {hazard.title}: {', '.join(hazard.subjects)}"
    for right in flow.rights:
        yield f"right on {right.cluster}: {right.lacks}"
