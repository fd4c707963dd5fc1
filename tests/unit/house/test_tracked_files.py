"""The repository speaks of nothing outside itself: no path of somebody's machine, no private registry, no secret."""

import re

from tests.support.tracked_files import tracked_texts

# Written in pieces, lest this file be what it looks for.
LOCAL_PATHS = re.compile(
    r"(?<![\w.$}/-])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers"]) + r")/\w"
)
REGISTRIES = re.compile(
    r"artifac" + r"tory|nex" + r"us\.|\.(?:internal|corp|lan)(?::\d+)?/(?:simple|maven|pypi)", re.IGNORECASE
)
PRIVATE_KEY = re.compile("-----BEGIN [A-Z ]*PRIVATE" + " KEY-----")


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in tracked_texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_a_machine() -> None:
    assert not _lines_with(LOCAL_PATHS)


def test_no_private_registry() -> None:
    assert not _lines_with(REGISTRIES)


def test_no_private_key() -> None:
    assert not _lines_with(PRIVATE_KEY)


def test_no_generated_file_is_kept() -> None:
    assert not [name for name in tracked_texts() if name.endswith((".pyc", ".jar", ".jsa", ".log", "uv.lock"))]


def test_files_end_with_one_newline() -> None:
    loose = [
        name for name, text in tracked_texts().items() if text and (not text.endswith("\n") or text.endswith("\n\n"))
    ]
    assert not loose
