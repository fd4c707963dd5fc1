"""`lockstep explain`: what a code means, offline."""

import json
from functools import partial

import pytest

from lockstep_cli.__main__ import main
from lockstep_cli.commands.explain import complete_code
from lockstep_ops.doctor.checks.registry import CHECKS
from lockstep_ops.findings.catalogue import FINDINGS
from lockstep_state import project_address
from tests.support.command_line import lockstep

explain = partial(lockstep, "explain")


def test_code_is_explained_with_its_fix_and_its_page() -> None:
    assert explain("ls024").stdout.splitlines() == [
        "LS024  A selection that matches nothing",
        "  kind:  hazard of lockstep plan, warning",
        "  means: The source has topics, or groups that read mirrored topics, and the filters select none of",
        "         them. The flow runs and copies nothing of that kind. Names are matched as a whole, and",
        "         capital letters count.",
        "  fix:   Compare topics, topics.exclude, groups and groups.exclude with the names on the source",
        "  see:   " + project_address.page("docs/reference/plan-hazards.md#ls024-a-selection-that-matches-nothing"),
    ]


def test_link_of_a_text_is_shown_as_its_path() -> None:
    assert "(the cases: docs/troubleshoot/halted-partition.md#the-cases)" in explain("target-recreated").stdout
    assert "Lockstep (docs/reference/broker-versions.md)" in explain("LS028").stdout
    lagging = explain("LockstepLagging").stdout
    assert "Lag grows (docs/troubleshoot/lag.md#lag-grows)" in lagging
    assert "  look:  The dashboard's Partitions furthest behind" in lagging


def test_detail_of_a_reason_is_a_name_in_capital_letters() -> None:
    assert explain("no-slot-yet").stdout.startswith("no-slot-yet  the flow has no slot <SLOT>: it has none yet\n")


def test_code_of_two_kinds_is_explained_twice() -> None:
    kinds = json.loads(explain("nothing-copied", "-o", "json").stdout)
    assert [kind["kind"] for kind in kinds] == [
        "reason why clients cannot move to the target",
        "reason in lockstep status, rows and events",
    ]
    assert {*kinds[0]} == {"code", "kind", "severity", "title", "meaning", "fix", "page"}
    assert "look_at" in json.loads(explain("LockstepGap", "-o", "json").stdout)[0], "an alert says where to look"


@pytest.mark.parametrize("code", ["LockstepGap", "TopicFailed", "MESSAGE_TOO_LARGE", "foreign", "passed-over", "LD504"])
def test_each_kind_of_code_is_known(code: str) -> None:
    assert explain(code).exit_code == 0


def test_unknown_code_is_refused_with_the_nearest_ones() -> None:
    result = explain("partition-halt")
    assert result.exit_code == 2
    assert result.stderr == (
        "'partition-halt' is not a code of this release. "
        "Did you mean partition-halted or PartitionHalted or partition-absent?\n"
    )
    assert explain("xyzzy-9").stderr == (
        "'xyzzy-9' is not a code of this release. lockstep explain --help says what has a code.\n"
    )


def test_codes_are_completed() -> None:
    from click import Context

    context = Context(main)
    parameter = main.commands["explain"].params[0]
    assert [item.value for item in complete_code(context, parameter, "ld10")] == [
        check.code for check in CHECKS if check.code.startswith("LD10")
    ]
    assert len(complete_code(context, parameter, "")) == len({kind.code for kind in FINDINGS})
