"""What others rely on stays as it is, to the byte: records, names, keys, commands, JSON, metrics, pages, log and spans.

The golden files beside this say what it is. Three have theirs elsewhere: values of records are as in
`lockstep_state/schemas`, metrics as in `docs/reference/metrics.md`, and configuration keys as in `configuration.md`
there. Where a change is meant, `python -m tests.unit.golden.write` and `make docs` write them anew.
"""

import json

import pytest

from tests.unit.golden import programs, sources
from tests.unit.golden.code import texts_like
from tests.unit.golden.examples import STATUS_ROWS, filled, least
from tests.unit.golden.texts import CAMEL_CASE, TEXTS, event_details
from tests.unit.golden.write import FOLDER, difference, kept

NAMES = [name.rpartition(".v")[0] for name in sources.schemas()]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_format_is_the_golden_one(name: str) -> None:
    assert kept(name), f"there is no {name}: python -m tests.unit.golden.write {name}"
    changed = difference(name)
    assert not changed, f"a public format has changed; if it is to: python -m tests.unit.golden.write {name}\n{changed}"


def test_every_golden_file_is_of_a_format() -> None:
    assert {file.name for file in FOLDER.glob("*.txt")} == set(TEXTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_read_as_it_was_written(name: str) -> None:
    schema = next(one for key, one in sources.schemas().items() if key.startswith(f"{name}.v"))
    for body in (filled(schema), least(schema)):
        key, value = sources.record(name, body)
        assert value is not None
        assert sources.again(name, key, value) == (key, value)


@pytest.mark.parametrize("name", sources.schemas())
def test_a_value_has_all_fields_of_its_schema_in_their_order(name: str) -> None:
    kind, _, version = name.rpartition(".v")
    schema = sources.schemas()[name]
    for body in (filled(schema), least(schema)):
        _, value = sources.record(kind, body)
        fields = [(field, body.get(field, about.get("default"))) for field, about in schema["properties"].items()]
        derived = {name: json.loads(value or b"")[name] for name in sources.derived_fields(kind)}
        meant = {**dict(fields), **derived, "version": int(version)}
        assert (value or b"").decode() == json.dumps(meant, separators=(",", ":"), ensure_ascii=False)


def test_golden_records_cover_every_kind() -> None:
    kinds = {f"{kind}.v{version}" for kind, version in sources.row_kinds().items()}
    assert {name for name in sources.schemas() if name[:-3] not in ("event", "command")} == kinds


@pytest.mark.parametrize("name", [name for name, *_ in sources.mirror_records()])
def test_mirror_makers_records_are_read_as_they_were_written(name: str) -> None:
    (found,) = ((meant, read) for what, _, meant, read in sources.mirror_records() if what == name)
    assert found[0] == found[1]


def test_every_event_is_a_word_of_the_code_and_answers_are_events() -> None:
    """A kind that the scan of calls does not see would be missing in `events.txt`."""
    said = texts_like(rf"{CAMEL_CASE}|[A-Z][a-z]+ed")
    assert event_details().keys() <= said
    assert set(sources.verbs().values()) <= event_details().keys()
    assert len(event_details()) > 45


def test_a_status_has_a_line_in_every_section() -> None:
    status = dict(programs.outputs(STATUS_ROWS))["status"]
    assert isinstance(status, dict)
    empty = [name for name, value in status.items() if value in ([], {}, None, "", ())]
    events_only = ["unreadable"]
    assert empty == ["lag_ms", *events_only], "of a partition that halted before its first record nobody knows an age"
