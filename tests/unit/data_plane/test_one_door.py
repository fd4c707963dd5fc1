"""`PartitionMachine.step` is the only writer of a partition's state: the code itself is read."""

import ast
from collections.abc import Iterator
from pathlib import Path

import lockstep_data_plane
from lockstep_data_plane.core import events, machine, partition_view
from lockstep_data_plane.core.machine import PartitionMachine

PACKAGE = Path(lockstep_data_plane.__file__).parent
CORE = PACKAGE / "core"
HOLDERS = ("partition", "p", "there", "machine", "held")
"""What code outside the core calls a machine."""


def classes_of(file: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in ast.parse(Path(file).read_text()).body if isinstance(node, ast.ClassDef)}


def written(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that are assigned, added to, or deleted in it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each


def methods(found: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in found.body if isinstance(node, ast.FunctionDef)}


def public_attributes() -> set[str]:
    given = methods(classes_of(partition_view.__file__)["PartitionView"])["__init__"]
    names = {each.attr for each in written(given)} | set(dir(PartitionMachine))
    return {name for name in names if not name.startswith("_")}


def test_partition_view_writes_nothing_after_it_is_made() -> None:
    found = methods(classes_of(partition_view.__file__)["PartitionView"])
    assert len(found) > 30
    wrong = [name for name, node in found.items() if name != "__init__" and any(written(node))]
    assert wrong == []


def test_machine_has_one_public_method_that_writes() -> None:
    found = methods(classes_of(machine.__file__)["PartitionMachine"])
    public = [name for name in found if not name.startswith("_")]
    assert public == ["step", "in_its_place"]
    assert not any(written(found["in_its_place"]))


def test_phase_is_assigned_in_one_line() -> None:
    lines = [
        (file.name, each.lineno)
        for file in sorted(CORE.glob("*.py"))
        for each in written(ast.parse(file.read_text()))
        if each.attr == "_phase" and file.name != "partition_view.py"
    ]
    assert [name for name, _ in lines] == ["machine.py"]


def test_each_event_has_its_handler() -> None:
    handlers = {name for name in vars(PartitionMachine) if name.startswith("_on_")}
    assert len(machine._HANDLERS) > 15
    assert all(each.__module__ == events.__name__ for each in machine._HANDLERS)
    assert {handler.__name__ for handler in machine._HANDLERS.values()} == handlers


def test_code_outside_the_core_writes_nothing_into_a_machine() -> None:
    names, wrong, seen = public_attributes(), [], 0
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.parent == CORE:
            continue
        tree = ast.parse(file.read_text())
        for each in ast.walk(tree):
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in HOLDERS:
                seen += 1
                if each.attr.startswith("_"):
                    wrong.append(f"{file.name}:{each.lineno} uses {each.attr}")
        wrong += [
            f"{file.name}:{each.lineno} writes {each.attr}"
            for each in written(tree)
            if each.attr in names and not (isinstance(each.value, ast.Name) and each.value.id == "self")
        ]
    assert seen > 150
    assert wrong == []
