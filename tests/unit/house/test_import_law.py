"""What import-linter cannot say, because it sees of a third-party package only its name: which parts of it we import.

aiokafka's records and codecs are plain values and may be used wherever aiokafka may. Its wire layer is used where Faust
is bent only, and kio's messages are loaded in one module. So a change of either touches few files (`architecture.md`
§2).
"""

import ast
from collections.abc import Iterator

from tests.support.source_modules import source_modules

WIRE = {
    "lockstep_kafka.messages.message_versions",
    "lockstep_runtime.membership.aiokafka_requests",
    "lockstep_runtime.membership.faust_overrides",
}
VALUES = ("aiokafka.codec", "aiokafka.record", "kio.schema.errors")


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _speaks_the_wire(imported: str) -> bool:
    return imported.split(".")[0] in ("aiokafka", "kio") and not imported.startswith(VALUES)


def test_only_connections_speak_the_wire_protocol() -> None:
    importing = {name for name, tree in source_modules() if any(map(_speaks_the_wire, _imports(tree)))}
    assert importing <= WIRE, f"aiokafka's wire layer or kio is imported by {sorted(importing - WIRE)}"
    assert importing, "nothing found: this test has lost its subject"


def test_no_module_works_at_import_time() -> None:
    """Beside definitions a module may only name things: calls stand in functions, so importing has no effects."""
    for name, tree in source_modules():
        for node in tree.body:
            acts = isinstance(node, ast.For | ast.While | ast.With | ast.Try)
            acts |= isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            assert not acts, f"{name}:{node.lineno} does something when it is imported"
