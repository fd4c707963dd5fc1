"""Reports of keys that neither MirrorMaker nor Lockstep knows, and of keys of no cluster or flow of the file.

Each is a mistake, or a line without effect (`Diagnostics.unknown_key`).
"""

from collections.abc import Iterable, Sequence

from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.key_suggestions import cluster_meant, find_misspelt_alias, flow_meant, suggest_key
from lockstep_config.resolve.value_typos import find_placeholder
from lockstep_config.text.properties import Entry

IS_UNKNOWN = "is no key that MirrorMaker or Lockstep knows"


def another_arrow(entry: Entry, aliases: Sequence[str], findings: Diagnostics) -> bool:
    """Report a key of a flow or of a cluster whose text around the alias is wrong; return whether it is one."""
    if (suggested := flow_meant(entry.key, aliases)) is not None:
        findings.unknown_key(entry, f"is no key of a flow as it is written; did you mean {suggested}?", near=True)
    elif (suggested := cluster_meant(entry.key, aliases)) is not None:
        stated = suggested in findings.stated
        instead = f"remove it; {suggested} is set, and counts" if stated else f"did you mean {suggested}?"
        findings.unknown_key(entry, f"{IS_UNKNOWN}; {instead}", near=not stated)
    return suggested is not None


def unknown_alias(
    entry: Entry,
    message: str,
    unknown: Iterable[str],
    aliases: Sequence[str],
    findings: Diagnostics,
    matters: bool = False,
) -> None:
    similar = next(filter(None, (find_misspelt_alias(alias, aliases) for alias in unknown)), None)
    unfilled = find_placeholder(entry.shown)
    message += f": did you mean {similar!r}?" if similar else f"; {unfilled}" if unfilled else ""
    findings.unknown_key(entry, message, near=matters or similar is not None or bool(unfilled))


def unknown(
    entry: Entry, name: str, level: KeyLevel, findings: Diagnostics, among: tuple[str, ...] | None = None
) -> None:
    """Report an entry whose key is unknown.

    Args:
        entry: The line.
        name: The unknown part of its key, behind its alias or flow.
        level: Where the key is written.
        findings: Takes the report.
        among: The names it may be, if `name` is the part behind a longer prefix.
    """
    if unfilled := find_placeholder(entry.shown):
        findings.unknown_key(entry, f"{IS_UNKNOWN}; {unfilled}", near=True)
        return
    suggestion = suggest_key(name, level, among)
    prefix = entry.shown.removesuffix(name) if entry.shown.endswith(name) else ""
    begin = entry.key.removesuffix(name)
    message = f"{IS_UNKNOWN}; {suggestion.advice.replace('{prefix}', prefix)}"
    matters = suggestion.matters or "lockstep." in entry.shown
    if stated := next((key for key in suggestion.keys if begin + key in findings.stated), None):
        message = f"{IS_UNKNOWN}: remove it; {prefix}{stated} is set, and counts"
        matters = matters and suggestion.misspelt
    findings.unknown_key(entry, message, near=matters)
