"""Files that change, and stand still again."""

import os
from pathlib import Path

from lockstep_runtime.util.file_changes import FileChanges, digests


def test_file_digest_is_of_the_content_behind_links(tmp_path: Path) -> None:
    """As the kubelet does it: `..data` is a link to a folder, and is swapped for another one."""
    for name, text in (("first", "1"), ("second", "2"), ("third", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "password").write_text(text)
    data, file = tmp_path / "..data", tmp_path / "password"
    data.symlink_to("first")
    file.symlink_to("..data/password")
    before = digests([file])
    swap(data, "second")
    after = digests([file])
    assert after != before
    swap(data, "third")
    assert digests([file]) == after


def swap(link: Path, to: str) -> None:
    fresh = link.with_name("..tmp")
    fresh.symlink_to(to)
    os.replace(fresh, link)


def test_a_file_that_is_gone_is_another_content(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("")
    before = digests([file])
    file.unlink()
    assert digests([file]) != before


def test_file_digest_differs_only_after_two_equal_reads() -> None:
    first, second, third = ({Path("f"): text} for text in "123")
    steady = FileChanges(first)
    reads = (first, second, third, third, third)
    assert [steady.differs(content) for content in reads] == [False, False, False, True, True]
    steady.accepted = dict(third)
    assert not steady.differs(third)
    assert [steady.differs(content) for content in (first, third, third)] == [False, False, False]


def test_file_digest_of_a_folder_is_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = digests([tmp_path])
    (tmp_path / "a").write_text("2")
    assert digests([tmp_path]) == before
    (tmp_path / "b").write_text("1")
    assert digests([tmp_path]) != before
