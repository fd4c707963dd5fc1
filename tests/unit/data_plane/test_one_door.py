"""`PartitionState.step` is the only writer of a partition's state: the code itself is read."""

import ast
from collections.abc import Iterator
from typing import get_args

from lockstep_data_plane.core import partition_state
from lockstep_data_plane.core.events import PartitionEvent
from lockstep_data_plane.core.partition_state import HANDLERS, PartitionState
from tests.support.source_modules import source_modules

PARTS = ("acked", "routing")
"""Parts of the state that others read."""

CHANGES_OF_PARTS = frozenset(
    {
        *("load", "resume_from", "note_source_end", "note_chain_end", "advance_to", "count_appended", "add_run"),
        *("count_fetched", "count_acknowledged", "after_resume", "enqueue", "launch", "defer_count", "on_ack"),
        *("count_acked", "on_failure", "on_failed", "break_off", "skip_marker", "reset", "extend_last"),
        *("spread_over", "pass_on", "queue_records", "close_group", "breaks_round", "join_transaction"),
    }
)
"""What changes them."""


def written(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that are assigned, added to, or deleted in it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each


def methods() -> dict[str, ast.FunctionDef]:
    module = dict(source_modules())[partition_state.__name__]
    (state_class,) = [node for node in module.body if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in state_class.body if isinstance(node, ast.FunctionDef)}


def outside_the_core() -> Iterator[tuple[str, ast.AST]]:
    for module, tree in source_modules():
        if module.startswith("lockstep_data_plane.") and not module.startswith("lockstep_data_plane.core."):
            for node in ast.walk(tree):
                yield module, node


def test_public_methods_but_step_write_nothing() -> None:
    public = {name: node for name, node in methods().items() if not name.startswith("_") and name != "step"}
    assert len(public) > 15
    assert [name for name, node in public.items() if any(written(node))] == []


def test_phase_is_assigned_in_one_method() -> None:
    assert [name for name, node in methods().items() if "phase" in {each.attr for each in written(node)}] == [
        "__init__",
        "_move",
    ]


def test_each_event_has_its_handler() -> None:
    assert set(HANDLERS) == set(get_args(PartitionEvent))
    handlers = {name for name in vars(PartitionState) if name.startswith("_on_")}
    assert {handler.__name__ for handler in HANDLERS.values()} == handlers


def test_code_outside_the_core_writes_no_attribute_of_a_partition() -> None:
    names = {each.attr for each in written(methods()["__init__"]) if not each.attr.startswith("_")}
    assert len(names) > 15
    wrong = [
        f"{module}:{node.lineno} writes {node.attr}"
        for module, node in outside_the_core()
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)
        if node.attr in names and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert wrong == []


def test_code_outside_the_core_changes_no_part_of_a_partition() -> None:
    seen, wrong = 0, []
    for module, node in outside_the_core():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr in PARTS:
            seen += 1
            if node.attr in CHANGES_OF_PARTS:
                wrong.append(f"{module}:{node.lineno} calls {node.attr}")
    assert seen > 20
    assert wrong == []
