"""The table of reasons in `switch.md`, from their declarations."""

from collections.abc import Mapping

from lockstep_state.reasons.switch_reason import SwitchReason
from tools.docs.pages import DOCS, table

PAGE = DOCS / "reference" / "switch.md"


def blocks() -> Mapping[str, str]:
    """Return a row for each reason, in the order in which they are shown."""
    rows = ((f"`{reason.word}`", reason.meaning, reason.remedy) for reason in SwitchReason)
    return {"switch reasons": table("reason | it means | do", rows)}
