"""`plan-hazards.md` has a section for each hazard, with links and marks of code."""

from lockstep_ops.plan.rules.hazards import HAZARDS
from tests.unit.house.test_docs_index import anchors
from tools.docs.plan_hazards import PAGE, marked


def test_hazard_texts_have_marks_of_code_and_links() -> None:
    assert marked("A rate (docs/guides/size-and-tune.md), or topics.exclude") == (
        "A rate ([guides/size-and-tune](../guides/size-and-tune.md)), or `topics.exclude`"
    )
    assert marked("Change groups or groups.exclude") == "Change `groups` or `groups.exclude`"
    assert marked("Measure it (--measure), or run it --from connect for groups") == (
        "Measure it (`--measure`), or run it `--from connect` for groups"
    )


def test_each_hazard_leads_to_its_section() -> None:
    assert {one.page.partition("#")[2] for one in HAZARDS} <= anchors(PAGE)
