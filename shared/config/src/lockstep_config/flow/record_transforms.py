"""The transforms of a flow, from its lines `lockstep.transform.NAME.KEY` and those at the top of the file.

The flow's own line goes before that at the top, for each key by itself. This module is pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from lockstep_config.flow.identity_topology import literal_prefix
from lockstep_config.flow.reader import Reader
from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_config.keys.transform_keys import (
    PREFIX,
    SECRET,
    STATEMENTS,
    THREADS,
    TRANSFORM_KEYS,
    find_transform_key,
    secret_key,
    split_transform_key,
)
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry
from lockstep_rules.filters import NameFilter
from lockstep_rules.mask_statement import SALT, mask_secrets, mask_statement
from lockstep_state.names import Flow, is_topic_name

NEVER = ("heartbeats",)
"""The topics without a transform: MirrorMaker itself writes heartbeats."""

BY_REFERENCE = (
    "is a secret, which is not written into this file: write ${file:/PATH:KEY} or ${env:NAME}, and name the provider "
    "in config.providers"
)
NO_SECRET = (
    "comes from a config provider, and what a transform does is no secret: it is shown and kept with the progress. "
    f"Write it here or name its file in {PREFIX}NAME.sql.file. A masking takes a secret by its name: tokenise(NAME)"
)


def transform_lines(layers: Layers, flow: Flow) -> Mapping[str, Cell]:
    """Return the lines of a flow's transforms that count, by their keys without the flow, in the order of keys."""
    keys = (key for key in (*layers.flow_lines(flow), *layers.top) if find_transform_key(key) is not None)
    cells = {key: precedence.connector(layers, flow, key) for key in sorted(set(keys))}
    return {key: cell for key, cell in cells.items() if cell is not None}


def read_transforms(layers: Layers, reader: Reader, findings: Diagnostics) -> tuple[TransformSettings, ...]:
    """Return the transforms of a flow in the order of their names. One that cannot be used is a problem.

    A flow that has heartbeats only has no transforms.
    """
    if not reader.value("enabled"):
        return ()
    lines: dict[str, dict[str, Cell]] = {}
    for key, cell in transform_lines(layers, reader.flow).items():
        if (parts := split_transform_key(key)) is not None:
            lines.setdefault(parts.name, {})[parts.key] = cell
    threads = reader.value(THREADS.name)
    read = [_read_transform(name, cells, threads, findings) for name, cells in lines.items()]
    transforms = tuple(transform for transform in read if transform is not None)
    for earlier, later in combinations(transforms, 2):
        if topic := find_shared_topic(earlier.topics, later.topics):
            findings.problem(
                lines[later.name]["topics"].entry,
                f"selects {topic}, which {PREFIX}{earlier.name}.topics selects too: a topic has one transform at most",
            )
    return transforms


def _read_transform(
    name: str, lines: Mapping[str, Cell], threads: int, findings: Diagnostics
) -> TransformSettings | None:
    """Return one transform; None if it cannot be used, which is a problem."""
    secrets = _read_secrets(lines, findings)
    topics, statement = _topics(name, lines, findings), _statement_key(name, lines, findings)
    if secrets is None or topics is None or not statement:
        return None
    cell = lines[statement]
    if statement == "mask":
        _require_secrets(name, cell, secrets, findings)
    sql = mask_statement(cell.value) if statement == "mask" else cell.value
    return TransformSettings(
        name=name,
        topics=topics,
        sql="" if statement == "python" else sql,
        python=cell.value if statement == "python" else "",
        tombstones=_value(lines, "tombstones"),
        filtered=_value(lines, "filtered"),
        on_error=_value(lines, "on.error"),
        secrets=secrets,
        threads=threads,
        statement_location=_locate_statement(cell.entry, findings),
    )


def _topics(name: str, lines: Mapping[str, Cell], findings: Diagnostics) -> NameFilter | None:
    cell = lines.get("topics")
    if cell is None:
        instead = f"is missing: name the topics of the source that {name} transforms, such as customers, orders-.*"
        findings.problem(f"{PREFIX}{name}.topics", instead)
        return None
    if not cell.value.include:
        findings.problem(cell.entry, f"is empty: name topics of the source, or remove the lines {PREFIX}{name}.*")
        return None
    return NameFilter(cell.value.include, NEVER)


def _statement_key(name: str, lines: Mapping[str, Cell], findings: Diagnostics) -> str:
    """Return which of `STATEMENTS` a transform has; "": none, or more than one, or one that is refused."""
    stated = [key for key in STATEMENTS if key in lines]
    if not stated:
        choices = f"{', '.join(STATEMENTS[:-1])} or {STATEMENTS[-1]}"
        findings.problem(f"{PREFIX}{name}", f"does not say what it does: add {PREFIX}{name}. and {choices}")
        return ""
    entry = lines[stated[-1]].entry
    if len(stated) > 1:
        others = " and ".join(f"{PREFIX}{name}.{key}" for key in stated[:-1])
        findings.plain_problem(entry, f"is set, and so is {others}: a transform has one of them")
        return ""
    if entry.referenced and stated[0] != "sql.file":
        findings.plain_problem(replace(entry, referenced=False), NO_SECRET)  # which shows nothing of the value
        return ""
    return stated[0]


def _read_secrets(lines: Mapping[str, Cell], findings: Diagnostics) -> Mapping[str, str] | None:
    """Return the secrets by name; None if one is not a reference, or is empty."""
    stated = {key.removeprefix(SECRET): cell for key, cell in lines.items() if key == SALT or key.startswith(SECRET)}
    wrong = False
    for cell in stated.values():
        if not cell.entry.referenced:
            findings.plain_problem(cell.entry, BY_REFERENCE)
            wrong = True
        elif not cell.value:
            findings.plain_problem(cell.entry, "is empty: a masking needs a secret")
            wrong = True
    return None if wrong else {name: cell.value for name, cell in stated.items()}


def _require_secrets(name: str, mask: Cell, secrets: Mapping[str, str], findings: Diagnostics) -> None:
    """Report each secret that a masking takes and that the transform does not have."""
    for secret in mask_secrets(mask.value):
        if secret not in secrets:
            instead = "write a reference to it, ${file:/PATH:KEY} or ${env:NAME}"
            findings.problem(secret_key(name, secret), f"is missing, and {mask.entry.shown} takes it: {instead}")


def _value(lines: Mapping[str, Cell], key: str) -> Any:
    return lines[key].value if key in lines else TRANSFORM_KEYS[key].default


def _locate_statement(entry: Entry, findings: Diagnostics) -> str:
    """Return where a statement is: its own file, or its line in the configuration."""
    if entry.key.endswith(".sql.file") and entry.read:
        return str(entry.read[-1])
    return findings.place_of(entry)


def find_shared_topic(topics: NameFilter, other_topics: NameFilter) -> str:
    """Return a name that both select; "" if none is found, which does not prove that there is none.

    Names are tried that the patterns themselves suggest: a pattern without its wildcards, or with a letter for them.
    """
    return find_suggested_topic(topics, other_topics.matches) or find_suggested_topic(other_topics, topics.matches)


def find_suggested_topic(topics: NameFilter, is_sought: Callable[[str], bool]) -> str:
    """Return a name that `topics` selects and that is sought; "": none is found, as in `find_shared_topic`."""
    names = (name for pattern in topics.include for name in _suggested_names(pattern))
    return next((name for name in names if topics.matches(name) and is_sought(name)), "")


def _suggested_names(pattern: str) -> Sequence[str]:
    literal, _ = literal_prefix(pattern)
    plain = pattern.replace("\\.", ".")
    names = (
        plain,
        *(plain.replace(".*", letters).replace(".+", letters or "x") for letters in ("", "x")),
        *(part for part in plain.strip("()").split("|")),
        literal,
        f"{literal}x",
    )
    return [name for name in names if is_topic_name(name)]
