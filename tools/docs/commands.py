"""The table of verbs in `commands.md`, from the declared verbs."""

from collections.abc import Mapping

from lockstep_state.commands.command_vocabulary import SCOPE_FORMS, VERBS
from tools.docs.pages import DOCS, code, grouped, table

PAGE = DOCS / "reference" / "commands.md"


def blocks() -> Mapping[str, str]:
    """Return the table of the verbs, which share a row with others of the same subjects."""
    verbs = grouped((code(SCOPE_FORMS[kind][0] for kind in verb.scopes), verb) for verb in VERBS.values())
    rows = (
        (code(each.verb for each in alike), subjects, code(each.answer for each in alike))
        for subjects, alike in verbs.items()
    )
    return {"commands: verbs": table("verb | subjects | event that answers it", rows)}
