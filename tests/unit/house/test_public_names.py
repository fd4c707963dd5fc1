"""A class has a name of its own in the whole repository, so that one word has one meaning (`glossary.md`). A function
without an underscore is used by another module (`CONTRIBUTING.md`)."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.support.source_modules import source_modules
from tests.support.tracked_files import tracked_texts

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


def _python_texts() -> dict[str, str]:
    return {name: text for name, text in tracked_texts().items() if name.endswith(".py")}


def test_public_function_is_used_by_another_module() -> None:
    files = defaultdict[str, int](int)
    for text in _python_texts().values():
        for word in set(re.findall(r"\w+", text)):
            files[word] += 1
    functions = [
        (module, node)
        for module, tree in source_modules()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    assert len(functions) > 400, "nothing found: this test has lost its subject"
    alone = [f"{module}.{node.name}" for module, node in functions if files[node.name] == 1 and not node.decorator_list]
    assert alone == []


RIDDLES = re.compile(
    r"_*(?:looks?|takes?|taken|took|tells?|told|of|stands?|bears?|who|add|flight)|.*[a-z]_of", re.IGNORECASE
)
"""One small word where a verb with its object says what is done, or a noun what is meant (CONTRIBUTING.md)."""

IN_TESTS_TOO = re.compile(r"_*(?:looks?|takes?|tells?|told|of|stands?|bears?|who)", re.IGNORECASE)


def _riddles(tree: ast.AST, words: re.Pattern[str] = RIDDLES) -> Iterator[str]:
    """Functions, classes, parameters and variables that are called so, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        else:
            continue
        if words.fullmatch(name):
            yield f"{node.lineno}: {name}"


def test_name_in_code_is_no_small_word() -> None:
    assert [f"{module}:{found}" for module, tree in source_modules() for found in _riddles(tree)] == []


def test_name_in_tests_and_tools_is_no_small_word() -> None:
    files = {name: text for name, text in _python_texts().items() if name.startswith(("tests/", "tools/", ".ci/"))}
    assert len(files) > 300, "nothing found: this test has lost its subject"
    found = [f"{file}:{one}" for file, text in files.items() for one in _riddles(ast.parse(text), IN_TESTS_TOO)]
    assert found == []


def test_small_words_are_found() -> None:
    code = """def _look(of, kind_of): flight = 1
class Who:
  told: int = 0
  def offset(self): self.taken = self.add(of=2)
"""
    assert sorted(_riddles(ast.parse(code))) == [
        "1: _look",
        "1: flight",
        "1: kind_of",
        "1: of",
        "2: Who",
        "3: told",
        "4: taken",
    ]


def test_annotations_are_evaluated() -> None:
    texts = _python_texts()
    assert len(texts) > 500, "nothing found: this test has lost its subject"
    line = "from __future__ " + "import annotations"
    assert [file for file, text in texts.items() if line in text] == []
