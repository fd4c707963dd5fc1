"""A class has a name of its own in the whole repository, so that one word has one meaning (`glossary.md`)."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.source_modules import source_modules

CLIENT = "lockstep_client"
"""A library of its own, which may not import the runtime: its errors have the same names for the same things."""


def test_public_class_name_is_unique() -> None:
    places = defaultdict(list)
    for module, tree in source_modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not module.startswith(CLIENT):
                places[node.name].append(module)
    assert len(places) > 300, "nothing found: this test has lost its subject"
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
