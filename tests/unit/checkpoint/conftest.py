"""Every test of this folder: the two comparisons of a command come one after the other."""

from pathlib import Path

import pytest

from lockstep_checkpoint import target_group_sync
from tests.unit.checkpoint.test_target_group_sync import Stage


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_group_sync, "SECOND_CHECK_S", 0.0)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
