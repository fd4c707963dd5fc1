"""A test is named `test_<subject>_<condition>_<result>`, so that `-k` finds it and a failure reads as a sentence."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
LONGEST = 70
PARTS = 3
"""Words at least behind `test`: subject, condition and result."""

BANNED = {
    "who",
    "whoever",
    "told",
    "tell",
    "tells",
    "bear",
    "bears",
    "said",
    "says",
    "stands",
    "took",
    "takes",
    "rests",
}


def scopes_of(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The names of the tests of a module and of each of its classes, as `file` and `file::Class`."""
    at = str(file.relative_to(TESTS.parent))
    module = ast.parse(file.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    for label, body in ((at, module.body), *((f"{at}::{one.name}", one.body) for one in classes)):
        functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        yield label, [function.name for function in functions if function.name.startswith("test_")]


@cache
def all_scopes() -> tuple[tuple[str, list[str]], ...]:
    """Those of each file of tests, parsed once."""
    return tuple(scope for file in sorted(TESTS.rglob("test_*.py")) for scope in scopes_of(file))


def test_test_name_has_three_parts_and_no_banned_word() -> None:
    wrong, number = [], 0
    for label, names in all_scopes():
        number += len(names)
        for name in names:
            words = name.split("_")[1:]
            if len(name) > LONGEST or len(words) < PARTS or BANNED & set(words):
                wrong.append(f"{label}::{name}")
    assert number > 2000
    assert not wrong, f"{PARTS} words, at most {LONGEST} characters, none of {', '.join(sorted(BANNED))}"


def test_test_name_is_unique_in_its_scope() -> None:
    assert [(label, name) for label, names in all_scopes() for name, n in Counter(names).items() if n > 1] == []
