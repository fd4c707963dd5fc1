"""Names of topics and groups are whole in every table, however narrow the terminal."""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from lockstep_cli.rendering.plan import plan_parts
from lockstep_cli.rendering.settings import settings_table
from lockstep_cli.rendering.status import report_parts
from lockstep_cli.rendering.table import Column, RowTable
from lockstep_cli.rendering.verification import verification_parts
from lockstep_config.report.effective import Setting
from lockstep_ops.verify.verification_report import build_verification
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import GroupStatus, VerifiedPartition
from tests.support.plan_facts import facts, settings_for
from tests.support.printed import printed
from tests.support.reports import progress, reported, topic
from tests.support.source_modules import source_modules
from tests.unit.cli.test_plan_display import plan

LONG = ("team." + "orders-" * 40)[:249]
MIDDLE = "payments." + "settled." * 6 + "v1"
PARTS = Iterable[RenderableType]


def group_row(name: str) -> GroupStatus:
    return GroupStatus(group=name, phase="translated", exact=1)


def status_parts() -> PARTS:
    rows = [row for name in (LONG, MIDDLE) for row in (topic(name), progress(name), group_row(name))]
    halted = topic(LONG, phase="refused", reason=f"A.{LONG} on B was made by somebody else")
    yield from report_parts(reported(*rows), ["topics", "partitions", "groups"], only_trouble=False)
    yield from report_parts(reported(*rows, halted), [], only_trouble=False)


def compared_parts() -> PARTS:
    rows = [replace(VerifiedPartition(topic="x", partition=0), topic=name) for name in (LONG, MIDDLE)]
    more = [row for name in (LONG, MIDDLE) for row in (topic(name), progress(name))]
    return verification_parts(build_verification(Flow("A", "B"), {row.key(): row for row in (*rows, *more)}))


def plan_shown_parts() -> PARTS:
    whole_plan = plan(facts(settings_for()))
    flow = whole_plan.flows[0]
    copied = replace(flow.copy, topics=tuple(replace(flow.copy.topics[0], topic=name) for name in (LONG, MIDDLE)))
    hazard_free = replace(flow, copy=copied, remarks=(f"topic {LONG} is new", f"topic {MIDDLE} is new"))
    return plan_parts(replace(whole_plan, flows=(hazard_free,)), terminal=True)


def settings_parts() -> PARTS:
    yield settings_table(Path("f"), "file", [Setting(name, "1", Path("f"), 1, name) for name in (LONG, MIDDLE)])


def table_parts() -> PARTS:
    """As the tables of take-over and hand-back are made."""
    kinds = {"topic": "name", "remote topic": "name", "why": "text", "n": "number"}
    columns = [column(index, title, kind) for index, (title, kind) in enumerate(kinds.items())]
    yield RowTable(columns, [(name, f"A.{name}", f"group {name} is away", "1,234") for name in (LONG, MIDDLE)])


@pytest.mark.parametrize("width", [40, 80, 200, 4_000])
@pytest.mark.parametrize("parts", [status_parts, compared_parts, plan_shown_parts, settings_parts, table_parts])
def test_names_are_whole_in_every_table(parts: Callable[[], PARTS], width: int) -> None:
    lines = printed(parts(), width).splitlines()
    assert not [line for line in lines if "…" in line or "..." in line]
    for name in (LONG, MIDDLE):
        assert any(name in line for line in lines), name
        assert not [line for line in lines if name[:30] in line and name not in line], "cut somewhere"


def column(index: int, title: str, kind: Any) -> Column[Sequence[str]]:
    return Column(title, itemgetter(index), kind)


def test_rows_that_fit_are_lines_with_columns() -> None:
    columns = column(0, "topic", "name"), column(1, "behind", "number"), column(2, "why", "text")
    rows = ("orders", "12", "it waits for a leader of the partition"), ("t", "1,234", "")
    assert printed([RowTable(columns, rows, title="topics")], 40).splitlines() == [
        "topics",
        "topic   behind  why",
        "orders      12  it waits for a leader of",
        "                the partition",
        "t        1,234",
    ]


def test_rows_that_do_not_fit_have_their_names_above_them() -> None:
    columns = column(0, "topic", "name"), column(1, "remote topic", "name"), column(2, "behind", "number")
    table = RowTable(columns, [("o" * 20, "A." + "o" * 20, "12")])
    lines = ["topic  remote topic", "    behind", "o" * 20, "  A." + "o" * 20, "        12"]
    assert printed([table], 40).splitlines() == lines


def test_no_other_module_makes_tables_or_consoles() -> None:
    """`ProgressDisplay` draws one line that goes away again."""
    imports = {
        (module, node.module)
        for module, tree in source_modules()
        if module.startswith("lockstep_cli.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (
            node.module == "rich.table"
            or (node.module == "rich.console" and any(name.name == "Console" for name in node.names))
        )
    }
    allowed = {f"lockstep_cli.rendering.{name}" for name in ("console", "lines", "progress_display", "table")}
    assert {module for module, _ in imports} <= allowed
