"""Versions and findings of transforms."""

from typing import Any

from lockstep_data_plane.transform.compiled_transform import (
    StatementRefused,
    TransformVersion,
)
from lockstep_state.codecs.transform_trial import TrialMistake


def version(**changed: str | int) -> TransformVersion:
    parts: dict[str, Any] = {"statement": "SELECT", "stages_text": "Filter", "settings": "ansi=true\n"}
    parts |= {"spark": "4.3.0", "java": 17, "jar": "abc"}
    return TransformVersion.of(**(parts | changed))


def test_a_version_changes_with_each_of_its_parts() -> None:
    assert version() == version()
    others: list[dict[str, str | int]] = [
        {"statement": "select"},
        {"stages_text": "Project"},
        {"settings": ""},
        {"spark": "4.3.1"},
        {"java": 21},
    ]
    others.append({"jar": "abd"})
    digests = {version(**other).digest for other in others}
    assert len(digests | {version().digest}) == 7


def test_parts_do_not_run_into_each_other() -> None:
    assert version(statement="a", stages_text="bc").digest != version(statement="ab", stages_text="c").digest


def test_a_version_is_short_for_people() -> None:
    assert str(version()) == version().digest[:12]


def test_a_refusal_names_every_place() -> None:
    findings = (
        TrialMistake("COLUMN_UNKNOWN", 2, 7, "valu", "there is no column valu"),
        TrialMistake("COLUMN_TWICE", 0, 0, "", "the column key is there twice"),
    )
    assert str(StatementRefused(findings)) == (
        "line 2, column 7: there is no column valu (valu); the column key is there twice"
    )
