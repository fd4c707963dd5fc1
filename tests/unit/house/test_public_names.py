"""A function without an underscore is used by another module (`CONTRIBUTING.md`)."""

import ast
import re
from collections import defaultdict

from tests.support.source_modules import source_modules
from tests.support.tracked_files import tracked_texts


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


def test_annotations_are_evaluated() -> None:
    texts = _python_texts()
    assert len(texts) > 500, "nothing found: this test has lost its subject"
    line = "from __future__ " + "import annotations"
    assert [file for file, text in texts.items() if line in text] == []
