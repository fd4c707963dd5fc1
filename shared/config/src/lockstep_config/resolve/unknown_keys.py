"""The messages on keys that neither MirrorMaker nor Lockstep knows, and on those of no cluster or flow of the file.
Each is a mistake, or a line without effect (`Diagnostics.unknown_key`)."""

from collections.abc import Iterable, Sequence

from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.key_suggestions import cluster_meant, flow_meant, like_alias, meant
from lockstep_config.resolve.slips import placeholder
from lockstep_config.text.properties import Entry

IS_UNKNOWN = "is no key that MirrorMaker or Lockstep knows"


def another_arrow(entry: Entry, aliases: Sequence[str], findings: Diagnostics) -> bool:
    """Whether the key is one of a flow or of a cluster but for the text around the alias, which is reported."""
    if (meant_key := flow_meant(entry.key, aliases)) is not None:
        findings.unknown_key(entry, f"is no key of a flow as it is written; did you mean {meant_key}?", near=True)
    elif (meant_key := cluster_meant(entry.key, aliases)) is not None:
        stated = meant_key in findings.stated
        instead = f"remove it; {meant_key} is set, and counts" if stated else f"did you mean {meant_key}?"
        findings.unknown_key(entry, f"{IS_UNKNOWN}; {instead}", near=not stated)
    return meant_key is not None


def unknown_alias(
    entry: Entry,
    message: str,
    unknown: Iterable[str],
    aliases: Sequence[str],
    findings: Diagnostics,
    matters: bool = False,
) -> None:
    found = next(filter(None, (like_alias(alias, aliases) for alias in unknown)), None)
    unfilled = placeholder(entry.shown)
    message += f": did you mean {found!r}?" if found else f"; {unfilled}" if unfilled else ""
    findings.unknown_key(entry, message, near=matters or found is not None or bool(unfilled))


def unknown(
    entry: Entry, name: str, scope: KeyLevel, findings: Diagnostics, among: tuple[str, ...] | None = None
) -> None:
    """`name` is the unknown part of the entry's key: the part behind its alias or flow. With `among`, the names that it
    may be, it is the part behind a longer prefix."""
    if why := placeholder(entry.shown):
        findings.unknown_key(entry, f"{IS_UNKNOWN}; {why}", near=True)
        return
    guess = meant(name, scope, among)
    prefix = entry.shown.removesuffix(name) if entry.shown.endswith(name) else ""
    begin = entry.key.removesuffix(name)
    message = f"{IS_UNKNOWN}; {guess.instead.replace('{prefix}', prefix)}"
    matters = guess.matters or "lockstep." in entry.shown
    if stated := next((key for key in guess.keys if begin + key in findings.stated), None):
        message = f"{IS_UNKNOWN}: remove it; {prefix}{stated} is set, and counts"
        matters = matters and guess.slip
    findings.unknown_key(entry, message, near=matters)
