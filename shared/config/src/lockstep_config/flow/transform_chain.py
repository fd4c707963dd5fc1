"""Connect's single message transforms of a flow (`transforms`), as far as Lockstep has a counterpart.

This module is pure. A `RegexRouter` becomes a rename. MM2 renames the topic of each record only. Here the topic itself
has the new name, with its configs, ACLs, groups and checkpoints. `Filter`, `InsertHeader` and `DropHeaders` become the
rules that `lockstep.filter` and `lockstep.headers` have.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_config.flow.reader import Reader
from lockstep_config.keys.record_rules import FILTER_KEY, HEADERS_KEY, header_name
from lockstep_config.keys.topic_renames import build_rename
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.values import BadValue, boolean, split_list
from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.record_rules import (
    NO_RULES,
    AddHeader,
    Condition,
    DropHeaders,
    DropRecord,
    HasHeader,
    InTopic,
    IsTombstone,
    Rule,
    RuleSelection,
    split_conditions,
)
from lockstep_rules.renames import Rename
from lockstep_rules.topic_plan import RENAME_KEY as RENAME

TRANSFORMS, PREDICATES = "transforms", "predicates"
CONNECT = "org.apache.kafka.connect.transforms."

CONDITIONAL = ("predicate", "negate")
"""The keys of each transform that say for which records it counts."""

CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "RegexRouter": ("regex", "replacement"),
        "Filter": (),
        "InsertHeader": ("header", "value.literal"),
        "DropHeaders": ("headers",),
    }
)
"""The transforms that are known, each with the keys that it needs. Connect also takes the class without its package."""

PREDICATE_CLASSES: Mapping[str, str | None] = MappingProxyType(
    {"HasHeaderKey": "name", "RecordIsTombstone": None, "TopicNameMatches": "pattern"}
)
"""The predicates that are known, each with the key that it needs."""

_OF_EITHER_PART = {
    "Cast": "to_json(variant_set(parse_json(CAST({part} AS STRING)), '$.FIELD', "
    "CAST(json_text({part}, '$.FIELD') AS INT)))",
    "ExtractField": "json_text({part}, '$.FIELD')",
    "HoistField": """concat('{{"FIELD":', CAST({part} AS STRING), '}}')""",
    "InsertField": "to_json(variant_insert(parse_json(CAST({part} AS STRING)), '$.FIELD', 'TEXT'))",
    "MaskField": "json_mask({part}, '$.FIELD', 'mask')",
    "ReplaceField": "json_mask({part}, '$.FIELD', 'remove')",
}

IN_SQL: Mapping[str, str] = MappingProxyType(
    {
        f"{name}${part.title()}": f"{expression.format(part=part)} AS {part}"
        for name, expression in _OF_EITHER_PART.items()
        for part in ("key", "value")
    }
    | {"ValueToKey": "json_text(value, '$.FIELD') AS key"}
)
"""The columns of the statement that does what a transform of Connect does, for values in JSON."""

KNOWN = f"{', '.join(CLASSES)} of {CONNECT}*"

_PLAIN_LITERAL = re.compile(r"(?!(?:true|false|null)\Z)[A-Za-z_][\w.@:/-]*|0|-?[1-9]\d{0,8}", re.ASCII)
"""Literals that Connect reads as a text or a number, and writes as they were."""


@dataclass(frozen=True, slots=True)
class TransformChain:
    """What the transforms of a flow do: the renames of topics, and the rules for records and headers."""

    renames: tuple[Rename, ...] = ()
    rules: RuleSelection = NO_RULES


def read_chain(layers: Layers, reader: Reader, findings: Diagnostics) -> TransformChain:
    """Return what the keys of a flow, or the `transforms` in their place, do to its topics and records.

    What has no counterpart, and a chain whose effect would differ, is a problem.
    """
    if not reader.value("enabled"):
        return TransformChain()  # the flow has heartbeats only, which keep their names and headers
    stated_renames: tuple[Rename, ...] = reader.value(RENAME) or ()
    stated_rules: tuple[Rule, ...] = (*(reader.value(FILTER_KEY) or ()), *(reader.value(HEADERS_KEY) or ()))
    chain = _ChainReader(layers, reader, findings)
    names: tuple[str, ...] = reader.value(TRANSFORMS) or ()
    steps = [step for name in names for step in chain.read_transform(name)]
    routers = [step for step in steps if isinstance(step, Rename)]
    rules = [step for step in steps if not isinstance(step, Rename)]
    about = reader.entry(TRANSFORMS) or TRANSFORMS
    if routers and stated_renames:
        findings.problem(about, f"renames topics, and so does {RENAME}: keep one of the two")
    elif len(routers) > 1:
        findings.problem(
            about,
            f"has {len(routers)} RegexRouters, which Connect applies one after another: write one {RENAME}, of which "
            "the first pattern that matches counts",
        )
    if rules and stated_rules:
        key = FILTER_KEY if reader.entry(FILTER_KEY) else HEADERS_KEY
        findings.problem(about, f"filters records or changes headers, and so does {key}: keep one of the two")
    if routers and any(_is_about_topics(step) for step in steps[steps.index(routers[0]) :]):
        findings.problem(
            about,
            "has a RegexRouter before a transform with TopicNameMatches, which Connect then asks for the new name. "
            "Here it is asked for the name before renames: put the RegexRouter last",
        )
    selection = RuleSelection(stated_rules or tuple(rules))
    if (header := selection.loop_header()) is not None:
        entry = reader.entry(FILTER_KEY) or reader.entry(TRANSFORMS)
        findings.note(
            entry or FILTER_KEY,
            f"keeps records from coming back by the header {header}. lockstep.provenance does that by producer ids, "
            "for topics that keep their names: no record is read and none is changed",
        )
    return TransformChain(stated_renames or tuple(routers[:1]), selection)


def _is_about_topics(step: Rename | Rule) -> bool:
    return not isinstance(step, Rename) and bool(step.topics)


class _ChainReader:
    """The reader of one flow's transforms and predicates. What it does not know becomes a problem."""

    def __init__(self, layers: Layers, reader: Reader, findings: Diagnostics) -> None:
        self._layers = layers
        self._reader = reader
        self._findings = findings

    def read_transform(self, name: str) -> Sequence[Rename | Rule]:
        """Return what a transform of the chain does; nothing if it has no counterpart, which is a problem."""
        lines = self._lines(TRANSFORMS, name)
        kind = lines.get("type")
        if kind is None:
            entry, message = self._reader.entry(TRANSFORMS), f"names {name!r}, but there is no {TRANSFORMS}.{name}.type"
            self._findings.problem(entry or TRANSFORMS, message)
            return ()
        java_class = kind.entry.value.strip()
        short = java_class.removeprefix(CONNECT)
        if short not in CLASSES:
            self._findings.problem(kind.entry, f"is {java_class!r}, which is refused: {_refusal(short)}")
            return ()
        conditions = self._read_conditions(name, kind, lines, is_router=short == "RegexRouter")
        if conditions is None or not self._has_keys(kind, short, f"{TRANSFORMS}.{name}", lines, CLASSES[short]):
            return ()
        values = [lines[key].entry.value.strip() for key in CLASSES[short]]
        of_records, of_topics = split_conditions(conditions)
        try:
            match short:
                case "RegexRouter":
                    return (build_rename(*values),)
                case "Filter":
                    return (DropRecord(of_records, of_topics),)
                case "InsertHeader":
                    return (AddHeader(header_name(values[0]), _literal(values[1]), of_records, of_topics),)
                case _:
                    return [DropHeaders(header_name(name), of_records, of_topics) for name in split_list(values[0])]
        except (BadValue, UntranslatablePattern) as exc:
            key = "value.literal" if short == "InsertHeader" else "regex"
            self._findings.problem(lines.get(key, kind).entry, str(exc))
            return ()

    def _read_conditions(
        self, name: str, kind: Cell, lines: Mapping[str, Cell], *, is_router: bool
    ) -> tuple[Condition, ...] | None:
        """Return the condition of a transform; None if it is wrong, which is a problem."""
        stated = [lines[key] for key in CONDITIONAL if key in lines]
        if is_router:
            for cell in stated:
                self._findings.problem(
                    cell.entry, f"is refused: the pattern of {RENAME} decides which topics are renamed"
                )
            return None if stated else ()
        predicate = lines.get("predicate")
        if predicate is None:
            if kind.entry.value.strip().removeprefix(CONNECT) == "Filter":
                self._findings.problem(
                    kind.entry, f"is a Filter without {TRANSFORMS}.{name}.predicate, which drops every record"
                )
                return None
            if stated:
                self._findings.problem(
                    stated[0].entry, f"negates no predicate, which Connect refuses: add {TRANSFORMS}.{name}.predicate"
                )
                return None
            return ()
        try:
            is_negated = "negate" in lines and boolean(lines["negate"].entry.value)
        except BadValue as exc:
            self._findings.problem(lines["negate"].entry, str(exc))
            return None
        condition = self._read_predicate(predicate, is_negated=is_negated)
        return None if condition is None else (condition,)

    def _read_predicate(self, predicate: Cell, *, is_negated: bool) -> Condition | None:
        name = predicate.entry.value.strip()
        lines = self._lines(PREDICATES, name)
        kind = lines.get("type")
        if name not in (self._reader.value(PREDICATES) or ()) or kind is None:
            missing = f"{PREDICATES}.{name}.type" if kind is None else f"{name!r} in {PREDICATES}"
            self._findings.problem(predicate.entry, f"names the predicate {name!r}, but there is no {missing}")
            return None
        java_class = kind.entry.value.strip()
        short = java_class.removeprefix(f"{CONNECT}predicates.")
        if short not in PREDICATE_CLASSES:
            choices = f"{', '.join(PREDICATE_CLASSES)} of {CONNECT}predicates.* have a counterpart"
            instead = "lockstep.transform.NAME.sql = SELECT * FROM records WHERE CONDITION filters by any other one"
            self._findings.problem(kind.entry, f"is {java_class!r}, which is refused. Only {choices}. {instead}")
            return None
        needed = PREDICATE_CLASSES[short]
        keys = () if needed is None else (needed,)
        if not self._has_keys(kind, short, f"{PREDICATES}.{name}", lines, keys):
            return None
        text = "" if needed is None else lines[needed].entry.value.strip()
        try:
            match short:
                case "HasHeaderKey":
                    return HasHeader(header_name(text), is_negated)
                case "TopicNameMatches":
                    return InTopic(NameFilter((text,)), is_negated)
                case _:
                    return IsTombstone(is_negated)
        except (BadValue, UntranslatablePattern) as exc:
            self._findings.problem(lines[needed or "type"].entry, str(exc))
            return None

    def _has_keys(self, kind: Cell, short: str, prefix: str, lines: Mapping[str, Cell], needed: Iterable[str]) -> bool:
        """Return whether a class has its keys and no others. Each that is missing or too many is a problem."""
        missing = [f"{prefix}.{key}" for key in needed if key not in lines]
        if missing:
            self._findings.problem(kind.entry, f"is a {short} without {' and '.join(missing)}")
        extra = [cell for key, cell in lines.items() if key not in ("type", *needed, *CONDITIONAL)]
        for cell in extra:
            self._findings.problem(cell.entry, f"is refused: it is no key of {short} that has a counterpart")
        return not (missing or extra)

    def _lines(self, kind: str, name: str) -> dict[str, Cell]:
        """Return the lines of a transform or predicate, the flow's before those at the top, by the key behind it."""
        prefix, flow = f"{kind}.{name}.", self._reader.flow
        keys = [key for key in (*self._layers.flow_lines(flow), *self._layers.top) if key.startswith(prefix)]
        cells = {key: precedence.connector(self._layers, flow, key) for key in keys}
        return {key.removeprefix(prefix): cell for key, cell in cells.items() if cell is not None}


def _refusal(short: str) -> str:
    """Return why a class is refused, and what to write in its place."""
    text = f"no Java runs for records here. Only {KNOWN} have a counterpart"
    if short in IN_SQL:
        sql = f"SELECT {IN_SQL[short]} FROM records"  # noqa: S608  # a sentence for people
        text = f"{text}. For values in JSON, lockstep.transform.NAME.sql = {sql} does the same"
    return text


def _literal(text: str) -> bytes:
    """Return the bytes of a header's value. Raises BadValue for a text that Connect would write in another way."""
    if _PLAIN_LITERAL.fullmatch(text) is None:
        raise BadValue(
            f"is {text!r}, which Connect reads as a value of some type and may write otherwise. Write {HEADERS_KEY} "
            "with the text that the header is to have"
        )
    return text.encode()
