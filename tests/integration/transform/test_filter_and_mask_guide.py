"""The examples of `docs/guides/filter-and-mask.md` do what the page says, by `lockstep transform` and as a flow."""

# ruff: noqa: S608  # Spark has no data here but the record's

import base64
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lockstep_state.names import Flow, events_topic, state_topic
from tests.support.batch_bytes import batch_bytes, record
from tests.support.broker import two_brokers
from tests.support.clusters import Record, create_topic, produce, read_topic
from tests.support.command_line import lockstep
from tests.support.eventually import wait_until
from tests.support.guides import ONE_BROKER
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun
from tests.support.transform_jvm import TransformJvm, records_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "filter-and-mask.md"
SALT = "a salt that nobody may see"
ENVIRONMENT = {"PII_SALT": SALT}
WITHIN = 180.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The page's configuration, with its statement and its samples beside it."""
    (statement,), (samples,) = blocks("sql"), blocks("json")
    (tmp_path / "orders.sql").write_text(statement, encoding="utf-8")
    (tmp_path / "samples.jsonl").write_text(samples, encoding="utf-8")
    lines = "".join(blocks("properties")).replace("/etc/lockstep/orders.sql", str(tmp_path / "orders.sql"))
    path = tmp_path / "mm2.properties"
    path.write_text(lines, encoding="utf-8")
    return path


def token(text: str) -> str:
    return hmac.new(SALT.encode(), text.encode(), hashlib.sha256).hexdigest()


def value_of(shown: Any) -> bytes | None:
    return None if shown["value"] is None else base64.b64decode(shown["value"]["base64"])


def test_check_accepts_the_page(file: Path) -> None:
    result = lockstep("transform", "check", file, "--output", "json", env=ENVIRONMENT)
    assert result.exit_code == 0, result.output
    transforms = {each["name"]: each for each in json.loads(result.stdout)["transforms"]}
    assert {name: each["columns_written"] for name, each in transforms.items()} == {"pii": ["value"], "eu": ["value"]}
    assert {name: each["filters"] for name, each in transforms.items()} == {"pii": False, "eu": True}
    assert all(each["secrets"] == ["salt"] and each["mistakes"] == [] for each in transforms.values())
    assert all(each["cost"]["call_ms"] > 0 and each["cost"]["records_per_s"] > 0 for each in transforms.values())
    assert SALT not in result.output


def test_try_masks_the_samples_of_the_page(file: Path) -> None:
    samples = file.with_name("samples.jsonl")
    arguments = ("transform", "try", file, "--topic", "customers", "--records", samples)
    result = lockstep(*arguments, "--values", "--output", "json", env=ENVIRONMENT)
    assert result.exit_code == 1, result.output
    body = json.loads(result.stdout)
    assert body["counts"] == {"changed": 2, "unchanged": 1, "dropped": 0, "failed": 1}
    first, second, tombstone, failed = body["records"]
    before = json.loads(value_of(first["before"]) or b"")
    after = json.loads(value_of(first["after"]) or b"")
    assert list(after) == ["name", "iban", "card", "since"]
    assert (after["name"], after["iban"], after["since"]) == (token(before["name"]), "DE02", 2019)
    assert re.fullmatch(r"\d{4}-\d{4}-\d{4}-\d{4}", after["card"])
    assert after["card"] != before["card"]
    assert json.loads(value_of(second["after"]) or b"") == {"name": token("Max Mustermann"), "since": 2021}
    assert value_of(tombstone["after"]) is None
    assert (failed["state"], failed["condition"]) == ("failed", "JSON_MALFORMED")
    assert SALT not in result.output

    shown = lockstep(*arguments, env=ENVIRONMENT)
    assert shown.exit_code == 1
    assert not re.search(r"Erika|Max|4111|DE02", shown.output), "values are masked unless they are asked for"
    assert "4 records of customers: 2 changed, 1 unchanged, 0 dropped, 1 failed" in shown.stdout


def test_try_drops_what_the_statement_of_the_page_filters(file: Path) -> None:
    samples = file.with_name("orders.jsonl")
    orders = [{"country": country, "customer": {"email": f"{country}@example.org"}} for country in ("DE", "FR", "DE")]
    samples.write_text("".join(json.dumps({"key": "k", "value": each}) + "\n" for each in orders))
    arguments = ("transform", "try", file, "--topic", "orders-1", "--records", samples)
    result = lockstep(*arguments, "--values", "--output", "json", env=ENVIRONMENT)
    assert result.exit_code == 0, result.output
    records = json.loads(result.stdout)["records"]
    assert [each["state"] for each in records] == ["changed", "dropped", "changed"]
    kept = [json.loads(value_of(each["after"]) or b"") for each in records if each["after"]]
    assert [each["customer"]["email"] for each in kept] == [token("DE@example.org")] * 2


def test_mistakes_have_their_place(file: Path) -> None:
    statement = file.with_name("orders.sql")
    statement.write_text("SELECT json_mask(value, '$.a', 'mask') AS valeu,\n  nowhere AS key\nFROM records\n")
    result = lockstep("transform", "check", file, "--no-cost", env=ENVIRONMENT)
    assert result.exit_code == 1
    assert f"{statement}: line 2, column 3" in result.stderr
    assert "    " + " " * 2 + "^" in result.stderr
    assert "1 of 2 transforms cannot be used" in result.stdout


def test_a_topic_without_a_transform_is_named(file: Path) -> None:
    result = lockstep("transform", "try", file, "--topic", "payments", env=ENVIRONMENT)
    assert result.exit_code == 2
    assert "no transform selects payments" in result.stderr


COLUMNS = re.compile(r"^\| `(.* AS \w+)` \|", re.MULTILINE)


async def test_columns_of_the_page_are_copied_as_it_says(jvm: TransformJvm) -> None:
    headers = [("x-user-id", b"1"), ("trace", b"2")]
    key = '{"id": "a person"}'
    content = record(0, b"{}", key=key.encode(), headers=headers)
    hashed = [token(key).encode(), b'{"id": "%s"}' % token("a person").encode()]
    made = []
    for column in COLUMNS.findall(PAGE.read_text(encoding="utf-8")):
        answer = await jvm.answer(
            f"SELECT {column} FROM records", batch_bytes([content]), secrets={"salt": SALT.encode()}
        )
        made += records_of(answer)
    assert [(each.key, tuple(each.headers)) for each in made] == [
        (content.key, ()),
        (content.key, (("trace", b"2"),)),
        (None, tuple(headers)),
        *((each, tuple(headers)) for each in hashed),
    ]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_flow_of_the_page_copies_masked_records_and_halts_at_one_that_it_cannot_mask(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PII_SALT", SALT)
    samples = [json.loads(line) for line in file.with_name("samples.jsonl").read_text().splitlines()]
    customers = [Record(key=each["key"].encode(), value=_as_value(each["value"])) for each in samples]
    orders = [{"country": country, "customer": {"email": f"{country}@example.org"}} for country in ("DE", "FR")]
    with two_brokers() as (a, b):
        text = file.read_text().replace("a:9092", a.bootstrap).replace("b:9092", b.bootstrap)
        file.write_text(f"{text}\n{ONE_BROKER}")
        for topic in ("customers", "orders-1"):
            create_topic(a.bootstrap, topic, partitions=1)
        produce(a.bootstrap, "customers", customers[:3])
        produce(a.bootstrap, "orders-1", [Record(key=b"o", value=_as_value(each)) for each in (*orders, None)])
        flow = MirroredFlow(Flow("A", "B"), a.bootstrap, b.bootstrap)
        run = LockstepRun(file)
        try:
            wait_until(lambda: len(_values(flow, "customers")) == 3, within=WITHIN, every=0.5, what="customers")
            first, second, tombstone = _values(flow, "customers")
            assert first["name"] == token("Erika Mustermann")
            assert (first["iban"], first["since"], "notes" in first) == ("DE02", 2019, False)
            assert second == {"name": token("Max Mustermann"), "since": 2021}
            assert tombstone is None
            wait_until(lambda: len(_values(flow, "orders-1")) == 2, within=WITHIN, every=0.5, what="orders")
            german, deleted = _values(flow, "orders-1")
            assert (german["customer"]["email"], deleted) == (token("DE@example.org"), None)
            produce(a.bootstrap, "customers", customers[3:])
            halted = flow.wait_event("PartitionHalted", "customers", within=WITHIN)
            assert halted.detail["cause"]["code"] == "record-not-transformed"
            assert len(_values(flow, "customers")) == 3
            own = (state_topic(flow.flow), events_topic(flow.flow))
            shown = run.text() + "".join(repr(read_topic(b.bootstrap, name)) for name in own)
            assert not re.search(rf"Erika|Mustermann|{SALT}", shown)
        finally:
            run.kill()


def _as_value(value: Any) -> bytes | None:
    return None if value is None else value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _values(flow: MirroredFlow, topic: str) -> list[Any]:
    """What the copy has, read as JSON."""
    if flow.mirrored(topic) is None:
        return []
    return [record.value and json.loads(record.value) for record in flow.copy_of(topic)]
