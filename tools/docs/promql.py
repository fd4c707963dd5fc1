"""What a PromQL expression names: the series it selects, and the labels by which it groups or joins.

No parser: whether an expression is one, promtool says (`tests/chart/test_rules.py`)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

OF_TARGETS = frozenset({"namespace", "job", "instance", "pod"})
"""Labels that Prometheus gives to every series of a target."""

_OF_PROMETHEUS = {"up": frozenset[str](), "ALERTS": frozenset({"alertname", "alertstate", "severity"})}

_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*")|(?P<range>\[[^\]]*\])|(?P<number>\d[\w.]*)|(?P<name>\$?[A-Za-z_:][\w:]*)|(?P<sign>\S)"""
)
_Token = tuple[str, str]

_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = frozenset({*_LISTS, "and", "or", "unless", "bool", "offset"})


@dataclass(frozen=True, slots=True)
class Selector:
    """Some series of a metric: label, operator and text of each condition."""

    metric: str
    conditions: tuple[tuple[str, str, str], ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a series of the metric with these labels is one of them. As for Prometheus, a label that is not there
        is empty, and an expression is for the whole text."""
        for label, operator, text in self.conditions:
            value = labels.get(label, "")
            same = re.fullmatch(text, value) is not None if "~" in operator else value == text
            if same == operator.startswith("!"):
                return False
        return True


@dataclass(slots=True)
class Named:
    """Of one expression: what it selects, and the labels of `by (...)`, `on (...)` and so on."""

    selectors: list[Selector] = field(default_factory=list)
    grouped: set[str] = field(default_factory=set)


def named_in(expression: str) -> Named:
    """Variables of a dashboard may stand in texts and ranges."""
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(re.sub(r"#[^\n]*", "", expression))]
    found = Named()
    at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        at += 1
        if kind != "name":
            continue
        if text in _LISTS and following == "(":
            inside, at = _until(tokens, at + 1, ")")
            found.grouped.update(one for kind, one in inside if kind == "name")
        elif text not in _WORDS and following not in ("(", "by", "without"):
            inside, at = _until(tokens, at + 1, "}") if following == "{" else ([], at)
            found.selectors.append(Selector(text, tuple(_conditions(inside))))
    return found


def _until(tokens: list[_Token], at: int, end: str) -> tuple[list[_Token], int]:
    upto = at
    while tokens[upto][1] != end:
        upto += 1
    return tokens[at:upto], upto + 1


def _conditions(inside: list[_Token]) -> Iterator[tuple[str, str, str]]:
    label, operator = "", ""
    for kind, text in inside:
        if kind == "name":
            label, operator = text, ""
        elif kind == "text":
            yield label, operator, re.sub(r"\\(.)", r"\1", text[1:-1])
        elif text != ",":
            operator += text


def undeclared(expression: str, declared: Mapping[str, frozenset[str]]) -> list[str]:
    """What it names that no page shows, in words. `declared`: the labels of each metric."""
    known = {**declared, **_OF_PROMETHEUS}
    named = named_in(expression)
    wrong = [f"no metric {one.metric}" for one in named.selectors if one.metric not in known]
    theirs = set(OF_TARGETS)
    for one in named.selectors:
        labels = known.get(one.metric, frozenset())
        theirs |= labels
        asked = {label for label, _, _ in one.conditions}
        wrong += [f"{one.metric} has no label {label}" for label in sorted(asked - labels - OF_TARGETS)]
    return wrong + [f"nothing there has a label {one}" for one in sorted(named.grouped - theirs)]
