"""Where a partition goes on, case by case: what a resume writes, in which order, what it says, and what comes out.

`resume_cases.txt` has it line by line. Where a change is meant, `python -m tests.unit.data_plane.test_resume_cases`
writes that file anew."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from lockstep_rules.offsets.gap_policy import GapCase
from tests.unit.data_plane import (
    resume_cases,
    resume_cases_compared,
    resume_cases_fenced,
    resume_cases_read_back,
    resume_cases_transformed,
    resume_cases_without,
)

KEPT = Path(__file__).parent / "resume_cases.txt"
CASES = {
    **resume_cases.CASES,
    **resume_cases_compared.CASES,
    **resume_cases_fenced.CASES,
    **resume_cases_without.CASES,
    **resume_cases_read_back.CASES,
    **resume_cases_transformed.CASES,
}
HEAD = "== "


def kept() -> Mapping[str, list[str]]:
    """The lines of each case."""
    blocks = KEPT.read_text(encoding="utf-8").split(HEAD)[1:]
    return {name: lines for name, *lines in (block.splitlines() for block in blocks)}


@pytest.mark.parametrize("name", CASES)
def test_resume_of_each_case_is_the_kept_one(name: str) -> None:
    assert CASES[name]().play() == kept()[name]


def test_kept_cases_cover_each_gap_case_and_decision() -> None:
    assert list(kept()) == list(CASES)
    lines = [line for case in kept().values() for line in case]
    halted = {line.split()[1].rstrip(":") for line in lines if line.startswith("halted")}
    assert halted == {case.value for case in GapCase}
    said = {line.split()[0] for line in lines}
    assert said >= {"GapSkipped", "CopyRestarted", "ResumedWithDoubt", "again:", "fenced", "progress", "nothing"}


if __name__ == "__main__":
    KEPT.write_text("".join(f"{HEAD}{name}\n" + "\n".join([*CASES[name]().play(), ""]) for name in CASES), "utf-8")
