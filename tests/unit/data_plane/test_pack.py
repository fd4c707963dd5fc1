"""The archive for executors has what the data plane needs, also of packages that are installed editable."""

import tarfile
from pathlib import Path

import pytest

from lockstep_data_plane import pack


def test_archive_needs_packages_below_the_data_plane_and_no_spark() -> None:
    names = pack.required_distributions().keys()
    below = ("data-plane", "runtime", "kafka", "config", "rules", "state")
    assert {name for name in names if name.startswith("lockstep")} == {f"lockstep-kafka-{name}" for name in below}
    assert "pyspark" not in names


def test_archive_has_the_modules_of_editable_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "environment.tar.gz"
    own = {
        name: distribution
        for name, distribution in pack.required_distributions().items()
        if name.startswith(pack.PREFIX)
    }
    monkeypatch.setattr(pack, "required_distributions", lambda: own)
    pack.pack(path)
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
    expected = {"lockstep_data_plane/slot/worker.py", "lockstep_kafka/wire/cluster.py", "lockstep_state/names.py"}
    assert {f"lib/{name}" for name in expected} <= names
