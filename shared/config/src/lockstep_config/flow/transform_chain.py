"""Connect's single message transforms of a flow (`transforms`), as far as Lockstep has a counterpart.

This module is pure. A `RegexRouter` becomes a rename. MM2 renames the topic of each record only. Here the topic itself
has the new name, with its configs, ACLs, groups and checkpoints.
"""

from lockstep_config.flow.reader import Reader
from lockstep_config.keys.topic_renames import build_rename
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.values import BadValue
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.renames import Rename
from lockstep_rules.topic_plan import RENAME_KEY as RENAME

TRANSFORMS = "transforms"
CONNECT = "org.apache.kafka.connect.transforms."
REGEX_ROUTER = f"{CONNECT}RegexRouter"
REGEX_ROUTERS = (REGEX_ROUTER, "RegexRouter")
"""The class, and its alias in Connect."""

ROUTER_KEYS = ("type", "regex", "replacement")
ONLY_ROUTER = f"Only {REGEX_ROUTER} has a counterpart ({RENAME})"


def read_renames(layers: Layers, reader: Reader, findings: Diagnostics) -> tuple[Rename, ...]:
    """Return the renames of a flow: of `lockstep.rename`, or of the `RegexRouter` in its `transforms`.

    What has no counterpart, and a chain whose effect would differ, is a problem.
    """
    if not reader.value("enabled"):
        return ()  # the flow has heartbeats only, which keep their names
    stated: tuple[Rename, ...] = reader.value(RENAME) or ()
    names: tuple[str, ...] = reader.value(TRANSFORMS) or ()
    routers = [rename for name in names if (rename := _read_transform(layers, reader, name, findings)) is not None]
    entry = reader.entry(TRANSFORMS)
    if routers and stated:
        findings.problem(entry or TRANSFORMS, f"renames topics, and so does {RENAME}: keep one of the two")
    elif len(routers) > 1:
        findings.problem(
            entry or TRANSFORMS,
            f"has {len(routers)} RegexRouters, which Connect applies one after another: write one {RENAME}, of which "
            "the first pattern that matches counts",
        )
    return stated or tuple(routers[:1])


def _read_transform(layers: Layers, reader: Reader, name: str, findings: Diagnostics) -> Rename | None:
    """Return the rename that a transform of the chain is; None if it is no rename, which is a problem."""
    lines = _lines(layers, reader, name)
    kind = lines.get("type")
    if kind is None:
        entry, message = reader.entry(TRANSFORMS), f"names {name!r}, but there is no {TRANSFORMS}.{name}.type"
        findings.problem(entry or TRANSFORMS, message)
        return None
    if (java_class := kind.entry.value.strip()) not in REGEX_ROUTERS:
        findings.problem(kind.entry, f"is {java_class!r}, which is refused: records are copied as bytes. {ONLY_ROUTER}")
        return None
    extra = [cell for key, cell in lines.items() if key not in ROUTER_KEYS]
    for cell in extra:
        findings.problem(cell.entry, f"is refused: the pattern of {RENAME} decides which topics are renamed")
    missing = [f"{TRANSFORMS}.{name}.{key}" for key in ROUTER_KEYS if key not in lines]
    if missing:
        findings.problem(kind.entry, f"is a RegexRouter without {' and '.join(missing)}")
    if extra or missing:
        return None
    try:
        return build_rename(*(lines[key].entry.value.strip() for key in ROUTER_KEYS[1:]))
    except (BadValue, UntranslatablePattern) as exc:
        findings.problem(lines["regex"].entry, str(exc))
        return None


def _lines(layers: Layers, reader: Reader, name: str) -> dict[str, Cell]:
    """Return the lines of one transform, the flow's own before those at the top, by the key behind its name."""
    prefix = f"{TRANSFORMS}.{name}."
    keys = [key for key in (*layers.flow_lines(reader.flow), *layers.top) if key.startswith(prefix)]
    cells = {key: precedence.connector(layers, reader.flow, key) for key in keys}
    return {key.removeprefix(prefix): cell for key, cell in cells.items() if cell is not None}
