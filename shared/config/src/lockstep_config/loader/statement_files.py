"""The files with the statements of transforms (`lockstep.transform.NAME.sql.file`)."""

from dataclasses import replace
from pathlib import Path

from lockstep_config.keys.transform_keys import STATEMENT_FILE
from lockstep_config.text.config_errors import Problem
from lockstep_config.text.files import read_content
from lockstep_config.text.properties import UTF8_BYTE_ORDER_MARK, Entry

LARGEST = 1024 * 1024
"""The most bytes of a statement."""


def with_statement(entry: Entry, file: Path) -> tuple[Entry, list[Problem]]:
    """Return the line with the statement of the file that it names as its value; any other line as it is.

    So a changed statement is a changed line. The file is the last one that was read for it. A line whose file cannot
    be read stays as it is, and is a problem of `file`.
    """
    if not STATEMENT_FILE.search(entry.key):
        return entry, []
    path = Path(entry.value.strip())
    try:
        statement = read_content(path, LARGEST).removeprefix(UTF8_BYTE_ORDER_MARK).decode()
    except OSError as exc:
        sought = "" if path.is_absolute() else f" (it is sought in {Path.cwd()}: write the whole path)"
        return entry, [_problem(entry, file, f"names {path}, which cannot be read: {exc.strerror}{sought}")]
    except UnicodeDecodeError:
        return entry, [_problem(entry, file, f"names {path}, which is no text in UTF-8")]
    return replace(entry, value=statement, read=(*entry.read, path)), []


def _problem(entry: Entry, file: Path, message: str) -> Problem:
    return Problem(entry.file or file, entry.line, entry.shown, message)
