"""What pages say of findings, from their catalogues."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.registry import checks_in
from lockstep_ops.findings.alerts import ALERTS
from lockstep_ops.plan.rules.hazards import HAZARDS
from lockstep_state.reasons.switch_reason import SwitchReason
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason, RecordPart
from tools.docs.pages import DOCS, wrapped

LINE = 175


def _checks(category: Category) -> Callable[[], Iterator[str]]:
    def rows() -> Iterator[str]:
        yield "| check | what it means | if it is not ok |\n|---|---|---|"
        for check in checks_in(category):
            yield f'| <a id="{check.anchor}"></a>{check.code} {check.title} | {check.meaning} | {check.fix} |'

    return rows


def _hazards() -> Iterator[str]:
    for kind in HAZARDS:
        yield f"## {kind.heading}\n"
        yield wrapped(f"*{kind.severity.capitalize()}.* {kind.meaning} **Fix:** {kind.fix}.", LINE) + "\n"


def _switch_reasons() -> Iterator[str]:
    yield "| reason | it means | do |\n|---|---|---|"
    for reason in SwitchReason:
        yield f'| <a id="{reason.word}"></a>`{reason.word}` | {reason.meaning} | {reason.remedy} |'


def _differences() -> Iterator[str]:
    for kind in DifferenceKind:
        yield f"- `{kind.value}`: {kind.meaning}."
    *parts, last = (f"`{part}`" for part in RecordPart)
    yield f"- {', '.join(parts)}, {last}: parts of a record differ; several are joined by `+`."


def _not_compared() -> Iterator[str]:
    for reason in NotComparedReason:
        yield f"- `{reason.value}`: {reason.meaning}."


def _alerts() -> Iterator[str]:
    for alert in ALERTS:
        yield f"## {alert.heading}\n"
        yield wrapped(f"{alert.title} {alert.severity.capitalize()}.", LINE) + "\n"
        for name, text in (("Means", alert.meaning), ("Look at", alert.look_at), ("Do", alert.fix)):
            yield wrapped(f"**{name}.** {text}", LINE) + "\n"


PAGES: Mapping[Path, Mapping[str, Callable[[], Iterator[str]]]] = {
    DOCS / "reference" / "doctor.md": {f"checks of {category}": _checks(category) for category in Category},
    DOCS / "reference" / "plan-hazards.md": {"hazards": _hazards},
    DOCS / "reference" / "switch.md": {"switch reasons": _switch_reasons},
    DOCS / "guides" / "verify.md": {"differences": _differences, "not compared": _not_compared},
    DOCS / "troubleshoot" / "alerts.md": {"alerts": _alerts},
}
"""By page: the lines of its blocks."""


def blocks(page: Path) -> Mapping[str, str]:
    """Return the blocks of a page as the catalogues have them now."""
    return {name: "\n".join(lines()) for name, lines in PAGES[page].items()}
