"""The words for what an operator is about to do: what it does, what it loses, and the question with its scope. Pure."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lockstep_ops.formatting import count_text, utc_moment
from lockstep_ops.halt_choices import QUARANTINE, RESTART_FROM, SKIP, HaltChoice, Offsets
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_steps import Verb
from lockstep_rules.offsets.gap_policy import GapCase
from lockstep_state.commands.command_vocabulary import (
    PAUSE,
    REFRESH,
    RESTART,
    RESUME,
    STOP,
    SYNC_GROUPS,
    VERIFY,
    Connector,
    Scope,
    ScopeKind,
)
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import PartitionProgress

FALLS_BEHIND = (
    "No record is lost, and the copy goes on where it was. Meanwhile {target} falls behind, and the retention of "
    "{source} does not wait."
)
NOTHING = "Nothing is lost."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWords:
    """What a command does and loses, in sentences, and the question that asks for it with its scope."""

    label: str
    does: str
    loses: str
    confirm: str

    def as_json(self) -> dict[str, Any]:
        """Return the words by name."""
        return asdict(self)


def scope_words(flow: Flow, scope: Scope) -> str:
    """Return a scope as people say it: `topic orders of A->B`."""
    match scope.kind:
        case ScopeKind.FLOW:
            return f"all of {flow}"
        case ScopeKind.CONNECTOR:
            return f"{_CONNECTORS[Connector(scope.name)]} of {flow}"
        case ScopeKind.SLOT:
            return f"slot {scope.number} of {flow}"
        case ScopeKind.PARTITION:
            return f"partition {scope.name}-{scope.number} of {flow}"
    return f"{scope.kind.value} {scope.name} of {flow}"


_CONNECTORS = {
    Connector.SOURCE: "the copy (topics, ACLs and records)",
    Connector.CHECKPOINT: "the consumer groups",
    Connector.HEARTBEAT: "the heartbeats",
}


def command_words(flow: Flow, verb: str, scope: Scope) -> CommandWords:
    """Return the words for a command of the services.

    Raises:
        KeyError: The verb is none that an operator asks for by a click.
    """
    subject = scope_words(flow, scope)
    label, does, loses = _WORDS[verb]
    names = {"subject": subject, "source": flow.source, "target": flow.target}
    return CommandWords(
        label=label,
        does=does.format(**names),
        loses=loses.format(**names),
        confirm=f"{label}: {subject}?",
    )


_WORDS = {
    PAUSE: (
        "Pause",
        "Nothing is done for {subject} until it is resumed. Processes and assignments stay. This holds over restarts "
        "and upgrades.",
        FALLS_BEHIND,
    ),
    RESUME: (
        "Resume",
        "What was paused or stopped goes on where it was: {subject}. What contains it must run too.",
        NOTHING,
    ),
    STOP: (
        "Stop",
        "The work for {subject} drains, writes down how far it is, and ends. Only a resume starts it again.",
        FALLS_BEHIND,
    ),
    RESTART: (
        "Restart",
        "The work for {subject} drains, and begins anew where it was. This also starts what has failed too often. What "
        "is paused or stopped stays so. A halted partition whose cause is still there halts again.",
        "Nothing is lost. For some seconds nothing of it is copied.",
    ),
    REFRESH: (
        "Refresh",
        "New topics, partitions, groups, ACLs and configs are looked for now, and not at their time: {subject}.",
        NOTHING,
    ),
    SYNC_GROUPS: (
        "Sync groups",
        "The offsets of all consumer groups are translated now, and groups on {target} that have no members move to "
        "their places, if the file lets groups move: {subject}.",
        "Nothing is lost. No group goes back.",
    ),
    VERIFY: (
        "Verify",
        "The copies are compared with their source, from what is verified already up to where the source ends now: "
        "{subject}. Slots of their own read both clusters.",
        "Nothing is changed. Both clusters are read, which costs bandwidth.",
    ),
}
"""The label, what the verb does, and what it loses."""

BY_CLICK = tuple(verb for verb in _WORDS if verb != VERIFY)
"""The verbs of services that an operator asks for by a click."""


def choice_words(flow: Flow, row: PartitionProgress, choice: HaltChoice) -> CommandWords:
    """Return the words for a choice about a halted partition."""
    name = f"{row.topic}-{row.partition}"
    label = _choice_label(choice)
    if choice.line:
        does = (
            f"No command does this. Write this line into the file, and start the data plane again: {choice.line}. "
            "It holds for later cases of the topic too."
        )
    else:
        place = f"source offset {choice.begin}" if choice.begin >= 0 else "the source offset that you name"
        does = (
            f"Three commands: the source connector of {flow} stops, the offset of {name} is set, and the connector "
            f"resumes. Meanwhile nothing of {flow} is copied. Then {name} goes on at {place}."
        )
    return CommandWords(
        label=label,
        does=does,
        loses=" ".join(_choice_losses(flow, row, choice)),
        confirm=f"{label}: partition {name} of {flow}?",
    )


def _choice_label(choice: HaltChoice) -> str:
    if choice.verb == SKIP:
        return f"Skip {_range(choice.lost)}" if choice.lost else "Go on without what is gone"
    if choice.verb == RESTART_FROM:
        return f"Go on from offset {choice.begin}" if choice.begin >= 0 else "Go on from an offset of your own"
    return "Quarantine the records"


def _choice_losses(flow: Flow, row: PartitionProgress, choice: HaltChoice) -> Iterator[str]:
    if choice.verb == QUARANTINE:
        yield (
            f"{flow.target} gets the other records. Those that it refuses are kept in the quarantine topic, and have "
            "to be handled there."
        )
        return
    if choice.line:
        yield f"Records of {flow.source} that are gone stay lost to the copy."
        return
    if choice.needs_offset:
        copied = f"up to {row.upstream}" if row.upstream >= 0 else "nothing yet"
        yield (
            f"The copy has {copied}. A later offset leaves out the records between. An earlier one copies records "
            "that are there already, so they are there twice."
        )
        return
    if choice.lost:
        yield f"Source {_range(choice.lost)} are not copied."
        if row.case == "refused":
            yield f"Among them may be records that {flow.target} would take."
    if choice.again:
        yield f"Records of the source's {_range(choice.again)} may be on {flow.target} twice."
    if choice.gone:
        yield f"What {flow.target} had at its {_range(choice.gone)} stays gone."
    if row.case == GapCase.SOURCE_RECREATED.value and choice.verb == RESTART_FROM:
        yield f"Records of the new log before offset {choice.begin} are not copied. Those of the former log stay."
    elif not (choice.lost or choice.again or choice.gone):
        yield "No record is left out, and none is copied twice." if choice.verb == SKIP else "No record is left out."


def _range(offsets: Offsets | None) -> str:
    assert offsets is not None
    first, last = offsets
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def switch_words(flow: Flow, options: SwitchOptions) -> CommandWords:
    """Return the words for a switch by the flow by which the applications move."""
    scope = f"{count_text(len(options.topics), 'topic')} of {flow}" if options.topics else f"all of {flow}"
    label = f"{options.verb.capitalize()} (drill)" if options.drill else options.verb.capitalize()
    return CommandWords(
        label=label,
        does=" ".join(_switch_deeds(flow, options)),
        loses=" ".join(_switch_losses(flow, options)),
        confirm=f"{label}: {scope}?",
    )


def _switch_deeds(flow: Flow, options: SwitchOptions) -> Iterator[str]:
    source, target = flow.source, flow.target
    if options.drill:
        yield f"A practice: every step but the hooks. The clients stay where they are, and {flow} goes on afterwards."
        return
    match options.verb:
        case Verb.SWITCHOVER:
            yield f"The writers on {source} are stopped, and everything is copied. Groups and clients move to {target}."
        case Verb.FAILOVER:
            yield f"The clients move to {target} without {source}. Its groups move to where their copies are."
        case Verb.FAILBACK:
            yield f"What was written on {source} since is copied back. Then groups and clients return to {target}."
    yield f"{flow} is stopped. Each step is written down, so the switch goes on if the browser or the console ends."


def _switch_losses(flow: Flow, options: SwitchOptions) -> Iterator[str]:
    source, target = flow.source, flow.target
    if options.drill:
        yield f"Nothing is lost. For some seconds {flow} copies nothing."
        return
    if options.verb is Verb.FAILOVER:
        if options.allowed_loss >= 0:
            yield f"At most {count_text(options.allowed_loss, 'record')} that {source} was known to have may be lost."
        else:
            yield f"No record may be lost that {source} was known to have."
        yield f"What {source} accepted after it was last heard is not known to anybody."
    elif options.cutoff_ms:
        yield f"Records that come to {source} after {utc_moment(options.cutoff_ms)} are not copied."
    else:
        yield "No record is lost."
    if options.verb is Verb.FAILBACK and options.diverged == "leave":
        yield f"Records that only {target} has stay there alone."
    if options.allows:
        allowed = ", ".join(sorted(options.allows))
        yield f"The switch goes on in spite of: {allowed}."
    yield "Once clients are redirected, nothing can be taken back but by the opposite switch."
