"""What a killed JVM left is removed by the next start, and nobody's who lives (`jvm_tempdir.py`)."""

import os
import subprocess
import sys
from pathlib import Path

from lockstep_data_plane.spark.conf import in_folder
from lockstep_data_plane.spark.jvm_tempdir import new_folder


def test_jvm_tempdir_without_a_lock_is_removed(tmp_path: Path) -> None:
    folder, lock = new_folder(tmp_path)
    (folder / "blockmgr-1" / "0a").mkdir(parents=True)
    os.close(lock)
    mine, lock = new_folder(tmp_path)
    assert list(tmp_path.iterdir()) == [mine]
    os.close(lock)


def test_jvm_tempdir_with_a_held_lock_is_kept(tmp_path: Path) -> None:
    others, first = new_folder(tmp_path)
    mine, second = new_folder(tmp_path)
    assert set(tmp_path.iterdir()) == {others, mine}
    os.close(first)
    os.close(second)


def test_jvm_tempdir_is_held_by_a_child_that_outlives_its_parent(tmp_path: Path) -> None:
    folder, lock = new_folder(tmp_path)
    waiting = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, pass_fds=(lock,)) as child:
        os.close(lock)
        _, second = new_folder(tmp_path)
        assert folder.exists()
        child.kill()
    os.close(second)
    _, third = new_folder(tmp_path)
    assert not folder.exists()
    os.close(third)


def test_jvm_tempdir_cleanup_keeps_foreign_folders_and_links(tmp_path: Path) -> None:
    elsewhere, link = tmp_path / "spark-1", tmp_path / "lockstep-jvm-link"
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    _, lock = new_folder(tmp_path)
    assert elsewhere.exists()
    assert link.is_symlink()
    os.close(lock)


def test_jvm_tempdir_is_set_unless_the_file_sets_another(tmp_path: Path) -> None:
    key = "spark.driver.extraJavaOptions"
    assert in_folder({key: "-Xss512k"}, tmp_path) == {key: f'-Xss512k "-Djava.io.tmpdir={tmp_path}"'}
    others = {key: "-Djava.io.tmpdir=/srv/tmp"}
    assert in_folder(others, tmp_path) == others
