"""Events and rows of many subjects are appended at once. An append waits for its acknowledgement, so a loop of appends
keeps a service busy for as long as many round trips take."""

import ast
from collections.abc import Iterator

from tests.support.source_modules import source_modules

APPENDS = {"event", "write", "write_if_changed", "append"}
FEW = {
    "lockstep_data_plane.admin.legacy_group: start_partitions": "the first few of the partitions that were moved",
    "lockstep_data_plane.admin.legacy_group: _commit_progress": "the first few of the partitions that differ",
    "lockstep_data_plane.progress.control_topic_writer: quarantine": "each entry counts once it is acknowledged",
    "lockstep_data_plane.spark.flow_transforms: compile": "a row follows the compilation of its statement",
    "lockstep_heartbeat.app: _ensure_topic": "there is one topic of heartbeats",
    "lockstep_runtime.membership.leader_loop: run": "a label whose lead changes often is reported once a period",
    "lockstep_ops.switch.switcher: abort": "each step is written down before the next begins",
}
"""Loops that append one after the other: why there are few, or why each waits."""


def loops_that_append(tree: ast.AST) -> Iterator[str]:
    """The functions with a loop that waits for an append in each of its rounds."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        loops = (node for node in ast.walk(function) if isinstance(node, ast.For | ast.AsyncFor))
        if any(is_append(node) for loop in loops for node in ast.walk(loop)):
            yield function.name


def is_append(node: ast.AST) -> bool:
    match node:
        case ast.Await(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in APPENDS
    return False


def test_loop_that_appends_is_found() -> None:
    loop = "async def report(self):\n for group in new:\n  await self._ctx.event('GroupFound', group)\n"
    assert list(loops_that_append(ast.parse(loop))) == ["report"]
    at_once = "async def report(self):\n await gather(*(self._ctx.event('GroupFound', group) for group in new))\n"
    assert list(loops_that_append(ast.parse(at_once))) == []


def test_many_events_and_rows_are_appended_at_once() -> None:
    loops = {f"{module}: {name}" for module, tree in source_modules() for name in loops_that_append(tree)}
    assert loops == FEW.keys()
