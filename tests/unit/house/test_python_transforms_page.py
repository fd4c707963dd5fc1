"""The examples of `docs/guides/python-transforms.md` do what the page says."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.layout import GappedOffsets
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform.python_evaluation import EvaluationLimits, evaluate
from lockstep_data_plane.transform.python_function import TableFunction
from lockstep_data_plane.transform.python_table import SCHEMA, RowRules
from tests.support.batch_bytes import batch_bytes, decoded, record
from tests.support.source_modules import REPOSITORY

PAGE = (REPOSITORY / "docs" / "guides" / "python-transforms.md").read_text(encoding="utf-8")
MODULES = ("masking", "filtering", "hashing")


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name is not None, block
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for module in MODULES:  # another test may have modules of these names
        sys.modules.pop(module, None)


def left(name: str, *content: PlainRecord, **secrets: str) -> list[PlainRecord]:
    function = TableFunction.load(name, secrets)
    limits = EvaluationLimits(1_000_000, 1 << 20)
    answer = evaluate(function, batch_bytes(content), 0, "payments", 0, RowRules(), limits)
    assert (answer.is_whole, answer.failures) == (True, ())
    offsets = GappedOffsets(tuple(answer.stretches))
    return [each._replace(offset=offset) for offset, each in zip(offsets, decoded(answer.batch), strict=True)]


def test_cards_are_masked() -> None:
    made = left("masking:mask", record(0, b'{"card": "4111-1111-1111-1234"}'), record(1, None))
    assert [each.value for each in made] == [b'{"card": "****-****-****-1234"}', None]


def test_records_of_another_country_are_filtered() -> None:
    german, french = record(0, headers=[("country", b"DE")]), record(1, headers=[("country", b"FR")])
    deleted = record(3, None)
    assert left("filtering:german", german, french, record(2), deleted) == [german, deleted]


def test_tombstones_pass_a_filter_that_returns_only_offsets() -> None:
    assert left("filtering:long", record(0, b"long"), record(1, b"s"), record(2, None)) == [
        record(0, b"long"),
        record(2, None),
    ]


def test_keys_are_hashed_with_a_secret() -> None:
    (made,) = left("hashing:hash_key", record(0, key=b"Erika"), salt="pepper")
    assert made.key is not None
    assert made.key.hex() == "bbbec349bd5d6542254c63c40f76305305734b9d5057727621137d201e4e6390"
    assert made.value == b"v"


def test_the_page_has_every_column() -> None:
    for field in SCHEMA:
        assert f"`{field.name}`" in PAGE
