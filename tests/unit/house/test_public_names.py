"""A class has a name of its own in the whole repository, so that one word has one meaning (`glossary.md`)."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
CLIENT = "lockstep_client"
"""A library of its own, which may not import the runtime: its errors have the same names for the same things."""


def test_public_class_name_is_unique() -> None:
    places = defaultdict(list)
    for source in sorted((*REPOSITORY.glob("services/*/src"), *REPOSITORY.glob("shared/*/src"))):
        for file in sorted(source.rglob("*.py")):
            at = str(file.relative_to(source))
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not at.startswith(CLIENT):
                    places[node.name].append(at)
    assert len(places) > 300, "nothing found: this test has lost its subject"
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
