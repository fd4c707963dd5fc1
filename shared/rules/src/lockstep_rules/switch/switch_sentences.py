"""The sentences about what prevents a switch. No decision reads them (no I/O, no clock)."""

from collections.abc import Mapping

from lockstep_state.reasons.reason import Detail
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason


def format_blocker(blocker: Blocker) -> str:
    """Return a sentence that names the subject and the known cause, without a full stop."""
    sentence = _sentence(blocker, dict(blocker.details))
    cause = "" if blocker.reason is SwitchReason.GROUP_SKIPS else format_sentence(blocker.cause)  # it has the numbers
    return f"{sentence}: {cause}" if cause else sentence


_PLAIN = {
    SwitchReason.TARGET_UNREACHABLE: "the target {} does not answer",
    SwitchReason.SOURCE_UNREACHABLE: "the source {} does not answer",
    SwitchReason.SERVICE_FAILING: "{} fails",
    SwitchReason.TOPIC_FAILED: "topic {} fails",
    SwitchReason.PARTITION_HALTED: "partition {} is halted and waits for a decision",
    SwitchReason.LAG_UNKNOWN: "how far partition {} is behind is not known",
    SwitchReason.GROUPS_UNKNOWN: "the consumer groups of the source are not known",
}


def _sentence(blocker: Blocker, values: Mapping[str, Detail]) -> str:
    subject = blocker.subject
    match blocker.reason:
        case reason if reason in _PLAIN:
            return _PLAIN[reason].format(subject)
        case SwitchReason.STOPPED | SwitchReason.PAUSED:
            return f"{subject} is {values.get('wanted', blocker.reason.word)}"
        case SwitchReason.NOTHING_COPIED:
            return "the flow has never run" if values.get("never_run") else "the flow has no partition to copy"
        case SwitchReason.PARTITION_NOT_COPYING:
            return f"partition {subject} is not copied now: it is {str(values.get('state', '')).replace('-', ' ')}"
        case SwitchReason.LAG:
            behind = f"{_seconds(values, 'lag_ms'):.1f} s behind ({values.get('lag_records', 0):,} records)"
            return f"partition {subject} is {behind}, {_seconds(values, 'max_lag_ms'):g} s are permitted"
        case SwitchReason.DELAYED:
            missing = f"{values.get('lag_records', 0):,} records are not on the target"
            return f"partition {subject} is copied {_seconds(values, 'delay_ms'):g} s late on purpose: {missing}"
        case SwitchReason.GROUPS_NOT_SYNCED:
            return _not_synced(values)
        case SwitchReason.GROUPS_STALE:
            return _stale(values)
    return _of_group(blocker, values)


def _of_group(blocker: Blocker, values: Mapping[str, Detail]) -> str:
    group, partitions = f"group {blocker.subject}", values.get("partitions")
    scope = f" in {partitions:,} partitions" if partitions else ""
    match blocker.reason:
        case SwitchReason.GROUP_FAILING:
            return f"{group} fails" if blocker.cause else f"{group} fails: without a reason"
        case SwitchReason.GROUP_REFUSED:
            return (
                f"{group} is refused"
                if blocker.cause
                else f"{group} is refused: the target does not accept its offsets"
            )
        case SwitchReason.GROUP_SKIPS if "partition" in values:
            state = str(values["state"]).replace("-", " ")
            skip = f"{values['partition']} is {state}, at {values['offset']} instead of {values['place']}"
            return f"{group} would skip records: {skip}"
        case SwitchReason.GROUP_SKIPS:
            return f"{group} would skip records{scope}"
        case SwitchReason.GROUP_CONTESTED | SwitchReason.GROUP_STUCK:
            partition = f": {values['partition']}" if "partition" in values else ""
            return (
                f"{group} cannot move{partition}"
                if blocker.cause
                else f"{group} cannot move{partition}: its row does not say why"
            )
        case SwitchReason.GROUP_IN_USE:
            members = f": {values['members']}" if "members" in values else ""
            return f"{group} has members on the target{members}"
    partition = f": {values['partition']}" if "partition" in values else ""
    not_written = not (blocker.cause or scope or partition) and values.get("written") == 0
    return f"{group} waits{scope}{partition}{': its offsets are not written to the target yet' if not_written else ''}"


def _not_synced(values: Mapping[str, Detail]) -> str:
    key, count = values.get("key", ""), values.get("groups")
    groups = "groups" if count is None else f"{count:,} group{'' if count == 1 else 's'}"
    return f"the offsets of {groups} are not written to the target: {key} is not in effect"


def _stale(values: Mapping[str, Detail]) -> str:
    means = "groups that appeared since are not known, and a group that went on since reads those records again"
    if "age_ms" not in values:
        return f"up to which moment the consumer groups of the source were read is not known: {means}"
    age, limit = _seconds(values, "age_ms"), _seconds(values, "max_age_ms")
    shown = f"{age:,.0f} s of the source's time, {limit:,.0f} s are permitted"
    return f"the consumer groups of the source were not read for {shown}: {means}"


def _seconds(values: Mapping[str, Detail], name: str) -> float:
    value = values.get(name, 0)
    return value / 1000 if isinstance(value, int) else 0.0
