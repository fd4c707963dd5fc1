"""What pages say of findings, from their catalogues."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.registry import checks_in
from lockstep_ops.findings.alerts import ALERTS
from lockstep_ops.findings.halt_cases import HALT_CASES
from lockstep_ops.plan.rules.hazards import HAZARDS
from lockstep_state.reasons.switch_reason import SwitchReason
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason, RecordPart
from tools.docs.pages import DOCS, table, wrapped

LINE = 175


def _checks(category: Category) -> str:
    rows = (
        (f'<a id="{check.anchor}"></a>{check.code} {check.title}', check.meaning, check.fix)
        for check in checks_in(category)
    )
    return table("check | what it means | if it is not ok", rows)


def _hazards() -> str:
    return "\n".join(
        f"## {hazard.heading}\n\n"
        + wrapped(f"*{hazard.severity.capitalize()}.* {hazard.meaning} **Fix:** {hazard.fix}.", LINE)
        + "\n"
        for hazard in HAZARDS
    )


def _switch_reasons() -> str:
    rows = ((f'<a id="{each.word}"></a>`{each.word}`', each.meaning, each.remedy) for each in SwitchReason)
    return table("reason | it means | do", rows)


def _differences() -> str:
    *parts, last = (f"`{part}`" for part in RecordPart)
    joined = f"- {', '.join(parts)}, {last}: parts of a record differ; several are joined by `+`."
    return "\n".join([*(f"- `{kind.value}`: {kind.meaning}." for kind in DifferenceKind), joined])


def _not_compared() -> str:
    return "\n".join(f"- `{reason.value}`: {reason.meaning}." for reason in NotComparedReason)


def _alerts() -> str:
    lines: list[str] = []
    for alert in ALERTS:
        texts = [f"{alert.title} {alert.severity.capitalize()}."]
        texts += [f"**Means.** {alert.meaning}", f"**Look at.** {alert.look_at}", f"**Do.** {alert.fix}"]
        lines += [f"## {alert.heading}\n", *(wrapped(text, LINE) + "\n" for text in texts)]
    return "\n".join(lines)


def _cases() -> str:
    rows = (
        (f"`{case.code}`", case.title, case.look_at, f"`{case.key}`" if case.key else "none") for case in HALT_CASES
    )
    return table("`case` | it means | look at | key", rows)


PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    DOCS / "reference" / "doctor.md": {f"checks of {category}": partial(_checks, category) for category in Category},
    DOCS / "reference" / "plan-hazards.md": {"hazards": _hazards},
    DOCS / "reference" / "switch.md": {"switch reasons": _switch_reasons},
    DOCS / "guides" / "verify.md": {"differences": _differences, "not compared": _not_compared},
    DOCS / "troubleshoot" / "alerts.md": {"alerts": _alerts},
    DOCS / "troubleshoot" / "halted-partition.md": {"cases": _cases},
}
"""By page: the texts of its blocks."""


def blocks(page: Path) -> Mapping[str, str]:
    """Return the blocks of a page as the catalogues have them now."""
    return {name: text() for name, text in PAGES[page].items()}
