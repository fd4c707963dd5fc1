"""Every module of `services/` and `shared/`, parsed, for tests that read the code."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@cache
def source_modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return import name and syntax tree, in order. Each file is parsed once for all tests."""
    gc.disable()  # what is parsed is kept: a collection meanwhile finds nothing
    modules = tuple(_parsed())
    gc.freeze()  # else each full collection visits a million nodes, for tests that have nothing to do with them
    gc.enable()
    return modules


def _parsed() -> Iterator[tuple[str, ast.Module]]:
    for source in sorted((*REPOSITORY.glob("services/*/src"), *REPOSITORY.glob("shared/*/src"))):
        for file in sorted(source.rglob("*.py")):
            name = ".".join(file.relative_to(source).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(file.read_text(encoding="utf-8"))
