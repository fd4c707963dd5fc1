"""Names of topics and groups are whole in every table, however narrow the terminal."""

import ast
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import RenderableType

from lockstep_cli.rendering.plan_display import plan_parts
from lockstep_cli.rendering.report_tables import as_tables
from lockstep_cli.rendering.row_table import Column, RowTable
from lockstep_cli.rendering.settings_shown import settings_shown
from lockstep_cli.rendering.verification_shown import verification_shown
from lockstep_cli.rendering.whole_line_console import WholeLineConsole
from lockstep_config.report.effective import Setting
from lockstep_ops.verify.verification_report import build_verification
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import GroupStatus, VerifiedPartition
from tests.support.plan_facts import facts, settings_for
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
    yield from as_tables(reported(*rows), ["topics", "partitions", "groups"], only_trouble=False)
    yield from as_tables(reported(*rows, halted), [], only_trouble=False)


def verification_parts() -> PARTS:
    rows = [replace(VerifiedPartition(topic="x", partition=0), topic=name) for name in (LONG, MIDDLE)]
    more = [row for name in (LONG, MIDDLE) for row in (topic(name), progress(name))]
    return verification_shown(build_verification(Flow("A", "B"), {row.key(): row for row in (*rows, *more)}))


def plan_shown_parts() -> PARTS:
    found = plan(facts(settings_for()))
    flow = found.flows[0]
    copied = replace(flow.copy, topics=tuple(replace(flow.copy.topics[0], topic=name) for name in (LONG, MIDDLE)))
    hazard_free = replace(flow, copy=copied, remarks=(f"topic {LONG} is new", f"topic {MIDDLE} is new"))
    return plan_parts(replace(found, flows=(hazard_free,)), terminal=True)


def settings_parts() -> PARTS:
    yield settings_shown(Path("f"), "file", [Setting(name, "1", Path("f"), 1, name) for name in (LONG, MIDDLE)])


def table_parts() -> PARTS:
    """As the tables of take-over and hand-back are made."""
    table = RowTable((Column("topic", "name"), Column("remote topic", "name"), Column("why"), Column("n", "number")))
    for name in (LONG, MIDDLE):
        table.add_row(name, f"A.{name}", f"group {name} is away", "1,234")
    yield table


def printed(parts: PARTS, width: int) -> list[str]:
    console = WholeLineConsole(file=io.StringIO(), width=width, highlight=False)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 200, 4_000])
@pytest.mark.parametrize("parts", [status_parts, verification_parts, plan_shown_parts, settings_parts, table_parts])
def test_names_are_whole_in_every_table(parts: Callable[[], PARTS], width: int) -> None:
    lines = printed(parts(), width)
    assert not [line for line in lines if "…" in line or "..." in line]
    for name in (LONG, MIDDLE):
        assert any(name in line for line in lines), name
        assert not [line for line in lines if name[:30] in line and name not in line], "cut somewhere"


def test_rows_that_fit_are_lines_with_columns() -> None:
    table = RowTable((Column("topic", "name"), Column("behind", "number"), Column("why")), title="topics")
    table.add_row("orders", "12", "it waits for a leader of the partition")
    table.add_row("t", "1,234", "")
    assert printed([table], 40) == [
        "topics",
        "topic   behind  why",
        "orders      12  it waits for a leader of",
        "                the partition",
        "t        1,234",
    ]


def test_rows_that_do_not_fit_have_their_names_above_them() -> None:
    table = RowTable((Column("topic", "name"), Column("remote topic", "name"), Column("behind", "number")))
    table.add_row("o" * 20, "A." + "o" * 20, "12")
    assert printed([table], 40) == ["topic  remote topic", "    behind", "o" * 20, "  A." + "o" * 20, "        12"]


def test_no_other_module_makes_tables_or_consoles() -> None:
    """`progress_display` draws one line that goes away again."""
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
    allowed = {
        "lockstep_cli.rendering.progress_display",
        "lockstep_cli.rendering.row_table",
        "lockstep_cli.rendering.whole_line_console",
    }
    allowed |= {"lockstep_cli.rendering.console"}  # for its type alone
    assert {module for module, _ in imports} <= allowed
