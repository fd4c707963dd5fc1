"""The sentence of the overview: how a flow is, in one line that never says "fine" if something is not. Pure."""

from collections import Counter

from lockstep_ops.formatting import ago, count_text, in_time
from lockstep_ops.status.report import Report
from lockstep_rules.switch.switch_sentences import format_blocker


def verdict(report: Report) -> str:
    """Return `fine`, or in words what is not."""
    if report.fine:
        return "fine"
    words = [f"{count:,} {state}" for state, count in report.not_copying.items()]
    words += [f"{count_text(count, 'group')} {reason}" for reason, count in report.groups_held.items()]
    states = ", ".join(words)
    if report.troubles:
        troubles = count_text(len(report.troubles), "trouble")
        return f"{troubles}; {states}" if states else troubles
    return states or "behind by nobody knows how much"


def overview_sentence(report: Report, verified_until_ms: int | None, at_ms: int) -> str:
    """Return one line about a flow.

    Args:
        report: The report of the flow.
        verified_until_ms: The Unix milliseconds up to which all copies are compared; None: not all ever were.
        at_ms: The present time in Unix milliseconds.
    """
    mirrored = sum(line.phase == "mirrored" for line in report.topics)
    parts = [
        verdict(report),
        count_text(mirrored, "topic"),
        _behind(report),
        *_groups(report),
        f"verified up to {ago(verified_until_ms, at_ms)}" if verified_until_ms else "never verified",
        *_switch(report),
    ]
    return f"{report.flow}: {', '.join(part for part in parts if part)}"


def _behind(report: Report) -> str:
    if report.lag_unknown:
        return f"of {count_text(report.lag_unknown, 'partition')} it is unknown how far behind"
    if report.lag_ms is None:
        return "behind by nobody knows how long"
    return f"worst {in_time(report.lag_ms)} behind" if report.lag_ms else "nothing behind"


def _groups(report: Report) -> list[str]:
    """Return how many groups are ready, and what the others are, unless the verdict says it."""
    counts = Counter("ready" if line.is_ready else line.readiness for line in report.groups if not line.held_back)
    words = sorted(counts, key=lambda word: (word != "ready", word))
    return [
        f"{counts[word]:,} {word}" if number else f"{count_text(counts[word], 'group')} {word}"
        for number, word in enumerate(words)
    ]


def _switch(report: Report) -> list[str]:
    if report.switch_ready is None:
        return []
    if report.switch_ready:
        return ["ready to switch"]
    blocking = [blocker for blocker in report.switch_blockers if blocker.blocks]
    return [f"not ready to switch: {format_blocker(blocking[0])}" if blocking else "not ready to switch"]
