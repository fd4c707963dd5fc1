"""The steps of a switch in order, the next one, and those that an abort takes back (no I/O, no clock)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from lockstep_state.commands.command_vocabulary import FLOW, Scope, ScopeKind
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch


class Verb(StrEnum):
    """The commands that switch sides."""

    SWITCHOVER = "switchover"
    FAILOVER = "failover"
    FAILBACK = "failback"


class Step(StrEnum):
    """The steps of a switch, one after the other. Each may be done twice."""

    CHECK = "check"
    DIVERGED = "diverged"
    RETURN = "return"
    BEFORE = "before"
    FENCE = "fence"
    ENDS = "ends"
    DRAIN = "drain"
    SETTLE = "settle"
    GROUPS = "groups"
    STOP = "stop"
    REVERSE = "reverse"
    REDIRECT = "redirect"
    RESTORE = "restore"
    AFTER = "after"


MEANINGS = {
    Step.CHECK: "check that the flow is ready",
    Step.DIVERGED: "decide about records that only the other cluster has",
    Step.RETURN: "copy back what was written since",
    Step.BEFORE: "hook before",
    Step.FENCE: "hook fence: stop the writers",
    Step.ENDS: "read where the source's logs end",
    Step.DRAIN: "wait until all of it is copied",
    Step.SETTLE: "stop the copy, and count what is missing",
    Step.GROUPS: "move consumer groups to their places",
    Step.STOP: "stop the flow",
    Step.REVERSE: "start the opposite flow",
    Step.REDIRECT: "hook redirect: send the clients to the other cluster",
    Step.RESTORE: "resume the flow",
    Step.AFTER: "hook after",
}

HOOKS = (Step.BEFORE, Step.FENCE, Step.REDIRECT, Step.AFTER)

REDIRECTED = (Step.REDIRECT, Step.AFTER)
"""The steps in which clients may begin to work on the other cluster. Nothing can be taken back after one has begun."""

OF_OPPOSITE = (Step.REVERSE, Step.DIVERGED)
"""The steps about the opposite flow, whose commands are on the cluster that the clients leave."""

WAITING, RUNNING, DONE, FAILED, UNDONE, LEFT = "waiting", "running", "done", "failed", "undone", "left"
"""The states of a step. `left`: an abort could not take it back, and was allowed to leave it."""

ANTI_FLAPPING_MS = 600_000
"""A second switch within this time needs `--allow-soon`."""


UNDER_WAY = frozenset({"running", "aborting"})
"""Phases of a switch that is to be continued or taken back before another one may begin."""


@dataclass(frozen=True, slots=True)
class StepState:
    """The state of a step of one switch.

    `began_ms` and `ended_ms` are Unix milliseconds; 0 means not yet.
    """

    step: Step
    state: str = WAITING
    began_ms: int = 0
    ended_ms: int = 0
    text: str = ""


def planned_steps(verb: Verb, *, hooks: Collection[Step], has_opposite: bool, drill: bool) -> tuple[Step, ...]:
    """Return the steps of a switch, in order. `hooks` are the hooks that the file has."""
    copy_steps = (Step.SETTLE,) if verb is Verb.FAILOVER else (Step.ENDS, Step.DRAIN)
    if drill:
        return (Step.CHECK, *copy_steps, Step.GROUPS, Step.STOP, Step.RESTORE)
    failback_steps = (Step.DIVERGED, Step.RETURN) if verb is Verb.FAILBACK else ()
    # The opposite flow of a failover leads to a cluster that is gone.
    reverse = (Step.REVERSE,) if has_opposite and verb is not Verb.FAILOVER else ()
    steps = (
        *(Step.CHECK, *failback_steps, Step.BEFORE, Step.FENCE, *copy_steps),
        *(Step.GROUPS, Step.STOP, *reverse, Step.REDIRECT, Step.AFTER),
    )
    return tuple(step for step in steps if step not in HOOKS or step in hooks)


def step_states(row: Switch) -> tuple[StepState, ...]:
    """Return the states of the steps in a row."""
    return tuple(StepState(Step(step), state, began, ended, text) for step, state, began, ended, text in row.steps)


def next_step(row: Switch) -> Step | None:
    """Return the first step that is not done, or None if all are."""
    return next((state.step for state in step_states(row) if state.state != DONE), None)


def with_step(row: Switch, step: Step, state: str, at_ms: int, text: str = "") -> Switch:
    """Return the row after a step has begun or ended."""

    def after(present: StepState) -> StepState:
        if present.step is not step:
            return present
        if state == RUNNING:
            return StepState(step, state, at_ms, 0, text)
        return StepState(step, state, present.began_ms or at_ms, at_ms, text)

    states = map(after, step_states(row))
    return replace(row, steps=tuple((str(s.step), s.state, s.began_ms, s.ended_ms, s.text) for s in states))


def with_next_step(row: Switch, at_ms: int) -> Switch:
    """Return the row when its next step begins, or when the switch is done because no step is left.

    A step begins at the moment at which the one before has ended. So no time is outside of the steps.
    """
    step = next_step(row)
    if step is None:
        return replace(row, phase="done", ended_ms=at_ms)
    return with_step(row, step, RUNNING, at_ms)


def began_at(row: Switch, at_ms: int) -> Switch:
    """Return the row of a switch that began earlier, with its command: the first step has all of its time."""
    (name, state, _, ended_ms, text), *others = row.steps
    return replace(row, began_ms=at_ms, steps=((name, state, at_ms, ended_ms, text), *others))


def switch_scopes(row: Switch) -> list[Scope]:
    """Return the scopes that are stopped and started: the topics of the switch, or the whole flow.

    Clients write to topics of the same name on the other cluster, so the scopes are the same for both flows.
    """
    return [Scope(ScopeKind.TOPIC, topic) for topic in row.topics] or [FLOW]


def has_begun(row: Switch, *steps: Step) -> bool:
    """Return whether one of these steps has begun."""
    return any(state.step in steps and state.state != WAITING for state in step_states(row))


def find_abort_refusal(row: Switch, flow: Flow) -> Reason:
    """Return why the switch cannot be taken back, or NO_REASON if it can."""
    next_verb = str(Verb.SWITCHOVER if row.verb == Verb.FAILBACK else Verb.FAILBACK)
    details = {"flow": str(flow), "verb": row.verb}
    if row.phase == "done":
        return RefusalCode.SWITCH_IS_DONE.to_reason(**details, then=next_verb)
    if row.phase == "aborted":  # `aborting` goes on
        return RefusalCode.SWITCH_IS_ABORTED.to_reason(**details)
    if has_begun(row, *REDIRECTED):
        return RefusalCode.CLIENTS_REDIRECTED.to_reason(**details, then=next_verb)
    return NO_REASON


def steps_to_undo(row: Switch) -> tuple[Step, ...]:
    """Return the steps that an abort takes back, last first.

    The opposite flow is stopped if it was started, and the flow is started if it was stopped. A copy of diverged
    records that did not end has left the opposite flow running.
    """
    states = {state.step: state.state for state in step_states(row) if state.state != WAITING}
    back = [step for step in reversed(states) if step in (Step.REVERSE, Step.STOP, Step.SETTLE, Step.DIVERGED)]
    rested = row.opposite_was != "running" or bool(row.opposite_paused)
    if Step.REVERSE in back and not rested:
        back.remove(Step.REVERSE)
    if Step.DIVERGED in back and (states[Step.DIVERGED] == DONE or row.diverged != "copy" or not rested):
        back.remove(Step.DIVERGED)
    return tuple(step for step in back if not (step is Step.SETTLE and Step.STOP in back))


def lasting_effects(row: Switch) -> Iterator[str]:
    """Yield the effects that stay after an abort, as sentences."""
    if has_begun(row, Step.RETURN):
        yield "what was copied back stays copied, and the flow that copies it goes on"
    if has_begun(row, Step.DIVERGED) and row.diverged == "leave":
        yield "the records that were left out stay left out"
    if has_begun(row, Step.DIVERGED) and row.diverged == "copy":
        yield "the diverged records that were copied stay copied"
    if has_begun(row, Step.GROUPS):
        yield "groups on the target stay where they were moved to, as group sync moves them anyhow"
    yield from (state.text for state in step_states(row) if state.state == LEFT)


def last_done_ms(row: Switch | None) -> int:
    """Return when the last switch ended that moved anything, in Unix milliseconds; 0 if there was none."""
    if row is None:
        return 0
    return row.ended_ms if row.phase == "done" and not row.drill else row.last_done_ms


def too_soon(rows: Collection[Switch], now_ms: int) -> Reason:
    """Return why no other switch may begin yet, or `NO_REASON` if one may.

    Args:
        rows: The switches of the flow and of its opposite.
        now_ms: Now, in Unix milliseconds.
    """
    last_ms = max(map(last_done_ms, rows), default=0)
    if not last_ms or now_ms - last_ms >= ANTI_FLAPPING_MS:
        return NO_REASON
    return RefusalCode.SWITCH_TOO_SOON.to_reason(ago_s=max(0, now_ms - last_ms) // 1000)
