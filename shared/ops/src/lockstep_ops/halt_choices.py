"""The choices of an operator about a halted partition: where its copy can go on, and what each choice loses. Pure.

A choice that a command can carry out sets the offset of the partition, as `lockstep offsets alter` does. What only the
file can decide has the line of configuration instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lockstep_config import FlowSettings
from lockstep_rules.offsets.decided_place import DECIDED, DecidedPlace
from lockstep_rules.offsets.gap_policy import GapCase, GapDecision, GapFound, decide_gap
from lockstep_state.codecs.connect_offsets import source_request
from lockstep_state.names import Flow
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import PartitionProgress
from lockstep_state.rows.value_types import LARGEST_COUNT

SKIP = "skip"
RESTART_FROM = "restart-from"
QUARANTINE = "quarantine"
DECISIONS = (SKIP, RESTART_FROM, QUARANTINE)
"""The verbs of decisions about a halted partition. They are no commands of the services."""

Offsets = tuple[int, int]
"""First and last offset."""


class CannotDecide(Exception):
    """No command carries the decision out. The message is a sentence.

    Args:
        sentence: The reason.
        line: The line of configuration that decides it; "" if there is none.
    """

    def __init__(self, sentence: str, line: str = "") -> None:
        super().__init__(sentence)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltChoice:
    """One choice about a halted partition.

    `begin` is the source offset at which the copy goes on; -1: the operator names it, or a line decides. `lost` and
    `again` are source offsets that are not copied, or that may be on the target twice. `gone` are target offsets that
    stay lost. `line` is the line of configuration, if no command carries the choice out.
    """

    verb: str
    begin: int = -1
    lost: Offsets | None = None
    again: Offsets | None = None
    gone: Offsets | None = None
    line: str = ""

    @property
    def needs_offset(self) -> bool:
        """Return whether the operator has to name the offset."""
        return self.begin < 0 and not self.line


def halt_choices(flow: Flow, row: PartitionProgress) -> tuple[HaltChoice, ...]:
    """Return the choices about a halted partition, without the verb `restart`. The first one loses least.

    A partition that is not halted has none.
    """
    return tuple(_choices(flow, row)) if row.phase == "halted" and row.cause.code != ReasonCode.EPOCHS_SPENT else ()


def choose(flow: Flow, row: PartitionProgress, verb: str, offset: int | None = None) -> HaltChoice:
    """Return the choice that a decision means.

    Args:
        flow: The flow.
        row: The partition.
        verb: One of `DECISIONS`.
        offset: The source offset at which the copy is to go on. None: where `halt_choices` says.

    Raises:
        CannotDecide: The partition is not halted, or no command does that.
    """
    name = f"{row.topic}-{row.partition}"
    if row.phase != "halted":
        raise CannotDecide(f"{name} is not halted, so nothing is to be decided: it is {row.phase}.")
    choices = halt_choices(flow, row)
    if not choices:
        raise CannotDecide(f"No command decides about {name}: {row.reason}.")
    if offset is not None and verb == RESTART_FROM:
        if not 0 <= offset <= LARGEST_COUNT:
            raise CannotDecide(f"{offset} is no offset.")
        equal_choices = [choice for choice in choices if choice.begin == offset and choice.verb == RESTART_FROM]
        return equal_choices[0] if equal_choices else _from(row, offset)
    matching = [choice for choice in choices if choice.verb == verb and not choice.needs_offset]
    if not matching:
        if verb == RESTART_FROM:
            raise CannotDecide(f"Nothing says where the copy of {name} should go on: name the source offset.")
        raise CannotDecide(f"A partition that is halted because of {row.case or 'that'} has no choice {verb}.")
    choice = matching[0]
    if choice.line:
        raise CannotDecide(
            f"No command carries {verb} out for {name}: this line in the file does, once the data plane has started "
            "again.",
            choice.line,
        )
    if offset is not None and offset != choice.begin:
        raise CannotDecide(
            f"{name} would go on at offset {choice.begin} now, not at {offset}: look again, and decide anew."
        )
    return choice


def offsets_request(settings: FlowSettings, row: PartitionProgress, choice: HaltChoice) -> dict[str, Any]:
    """Return the arguments of `offsets-alter` that let the copy go on where the choice says, if it is still there.

    Raises:
        CannotDecide: It would begin at offset 0, which only a reset can say, and a reset begins elsewhere.
    """
    source = settings.aliases.source
    decided = {DECIDED: DecidedPlace.of(row).to_json()}
    if choice.begin > 0:
        return source_request(source, row.topic, row.partition, choice.begin - 1) | decided
    plane = settings.data_plane
    if plane.start_timestamp.for_topic(row.topic) is not None or plane.auto_offset_reset != "earliest":
        raise CannotDecide(
            f"{row.topic}-{row.partition} can begin at offset 0 only where a first copy would, and the file says that "
            "a first copy begins elsewhere (lockstep.start.timestamp, auto.offset.reset)."
        )
    return source_request(source, row.topic, row.partition, None) | decided


def _choices(flow: Flow, row: PartitionProgress) -> Iterator[HaltChoice]:
    if row.case == "refused":
        yield from _refused(flow, row)
    elif (gap := _gap(row)) is not None:
        yield from _gap_choices(flow, row, gap)
    if row.case != "transform":
        yield HaltChoice(verb=RESTART_FROM)


def _refused(flow: Flow, row: PartitionProgress) -> Iterator[HaltChoice]:
    """Yield the choices about records that the target refuses, or that cannot be transformed."""
    first, last = row.cause.detail("first"), row.cause.detail("last")
    transform = row.cause.detail("transform")
    if row.cause.code == ReasonCode.RECORD_NOT_TRANSFORMED and isinstance(transform, str):
        yield HaltChoice(verb=QUARANTINE, line=f"lockstep.transform.{transform}.on.error = quarantine")
    else:
        yield HaltChoice(verb=QUARANTINE, line=_policy_line(flow, row.topic, "lockstep.on.refused", QUARANTINE))
    end = last if isinstance(last, int) else first
    if isinstance(end, int) and end > row.upstream:
        yield HaltChoice(verb=SKIP, begin=end + 1, lost=(row.upstream + 1, end))


def _gap_choices(flow: Flow, row: PartitionProgress, gap: GapFound) -> Iterator[HaltChoice]:
    if gap.case is GapCase.DOUBT:
        yield _decided(RESTART_FROM, decide_gap(gap, "progress"))
        return
    if gap.case is not GapCase.RECORDS_GONE:  # the same as to skip
        yield _decided(RESTART_FROM, decide_gap(gap, "restart"))
    if gap.case is GapCase.SOURCE_TRUNCATED:  # the row does not say where the logs part
        yield HaltChoice(verb=SKIP, line=_policy_line(flow, row.topic, gap.case.key, SKIP))
    else:
        yield _decided(SKIP, decide_gap(gap, "skip"))


def _decided(verb: str, decision: GapDecision | None) -> HaltChoice:
    assert decision is not None  # only `halt` decides nothing
    return HaltChoice(
        verb=verb,
        begin=decision.begin,
        lost=decision.skipped,
        again=decision.repeated,
        gone=decision.lost_downstream if verb == SKIP else None,
    )


def _gap(row: PartitionProgress) -> GapFound | None:
    """Return the gap as the row has it, or None if the row does not say what the clusters said."""
    facts = dict(row.cause.details)
    numbers = [facts.get(name) for name in ("wanted", "source_start", "source_end")]
    if row.case not in {case.value for case in GapCase} or not all(isinstance(number, int) for number in numbers):
        return None
    wanted, start, end = (int(number) for number in numbers if number is not None)
    target_wanted, target_end = facts.get("target_wanted", 0), facts.get("target_end", -1)
    gap = GapFound(case=GapCase(row.case), text="", next_upstream=wanted, start=start, end=end)
    if isinstance(target_wanted, int) and isinstance(target_end, int):
        gap = replace(gap, acked_downstream=target_wanted - 1, target_end=target_end)
    return gap


def _from(row: PartitionProgress, offset: int) -> HaltChoice:
    """Return the choice to go on at an offset that the operator names."""
    choice = HaltChoice(verb=RESTART_FROM, begin=offset)
    if row.case == GapCase.SOURCE_RECREATED.value:  # the offsets of before are of another log
        return choice
    upstream = row.upstream
    if offset > upstream + 1:
        return replace(choice, lost=(upstream + 1, offset - 1))
    return replace(choice, again=(offset, upstream)) if offset <= upstream else choice


def _policy_line(flow: Flow, topic: str, key: str, policy: str) -> str:
    """Return the line that decides by a policy for one topic. Its name is a pattern there."""
    pattern = topic.replace(".", "\\\\.")
    return f"{flow}.{key} = halt, {pattern}={policy}"
