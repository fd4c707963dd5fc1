"""The writer of lines from any form of input as an mm2.properties file. This module is pure."""

import re
from collections.abc import Iterable
from pathlib import Path

import javaproperties

from lockstep_config.text.config_errors import Problem
from lockstep_config.text.properties import Entry
from lockstep_config.text.secrets import is_secret, shown_credentials

_REFERENCES = re.compile(r"\s*(?:\$\{[^}]*\}\s*)+")
_JAAS_SECRET = re.compile(
    r"""\w*(?:password|passphrase|secret|token|key|assertion)\w*\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]+)""", re.IGNORECASE
)
"""Secret options of a JAAS line, by the end of their names. `oauth.client.assertion.location` names a file."""
_NOT_PRINTABLE = re.compile("[^ -~]")


def as_properties(entries: Iterable[Entry], path: Path) -> str:
    """Return a file that loads to the same model as the entries; references stay references.

    Above each line is its origin; `path` is the file of entries that name none. The text is ASCII, so that Java reads
    it as Lockstep does.
    """
    lines = [f"# From {_comment(str(path))}", ""]
    for entry in entries:
        place = f"{entry.file or path}:{entry.line}" if entry.line else str(entry.file or path)
        written = f" {entry.shown}" if entry.shown != entry.key else ""
        lines += [f"# {_comment(place + written)}", f"{javaproperties.escape(entry.key)} = {_value(entry.value)}"]
    return "\n".join(lines) + "\n"


def plain_secrets(entries: Iterable[Entry], path: Path) -> tuple[Problem, ...]:
    """Return the lines in which a secret is written out, instead of a reference to it."""
    message = (
        "holds a secret that is written out, so the output would have it too. Put it into a file and refer to it, "
        "as in ${file:/run/secrets/kafka.properties:password}, or say --with-secrets"
    )
    return tuple(
        Problem(entry.file or path, entry.line, entry.shown, message) for entry in entries if _is_plain_secret(entry)
    )


def _is_plain_secret(entry: Entry) -> bool:
    if not entry.value.strip() or not is_secret(entry.key):
        return False
    if entry.key.endswith("sasl.jaas.config"):
        secrets = [value.strip('"') for value in _JAAS_SECRET.findall(entry.value)]
        return any(value and not _REFERENCES.fullmatch(value) for value in secrets)
    if ".switch.hook." in entry.key:
        return any(not _REFERENCES.fullmatch(credential) for credential in shown_credentials(entry.value))
    return not _REFERENCES.fullmatch(entry.value)


def _value(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    blanks = len(escaped) - len(escaped.lstrip(" "))
    return _ascii("\\ " * blanks + escaped[blanks:])


def _ascii(text: str) -> str:
    return _NOT_PRINTABLE.sub(lambda match: javaproperties.escape(match[0]), text)


def _comment(text: str) -> str:
    return _ascii(text).replace("\\n", " ")
