"""The table of reasons in `switch.md`, from their declarations: `python -m tools.docs.switch_reasons` writes it."""

import re
from pathlib import Path

from lockstep_state.reasons.switch_reason import SwitchReason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "switch.md"
BLOCK = re.compile(r"(<!-- switch reasons -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its table as the declarations are now."""
    return BLOCK.sub(lambda block: f"{block[1]}{table()}", page)


def table() -> str:
    """A line for each reason, in the order in which they are shown."""
    lines = ["", "| reason | it means | do |", "|---|---|---|"]
    lines += [f"| `{reason.word}` | {reason.meaning} | {reason.remedy} |" for reason in SwitchReason]
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
