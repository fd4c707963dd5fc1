"""The guide `docs/guides/rename-topics.md` is carried out: each of its files runs, on clusters of its own."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_state.names import Flow
from tests.support.broker import Broker, two_brokers
from tests.support.clusters import Record, create_topic, produce, read_topic, topic_names
from tests.support.eventually import wait_until
from tests.support.guides import ONE_BROKER, run_guide_line
from tests.support.runs import lockstep_runs

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "rename-topics.md"
BLOCK = re.compile(r"^```(?:properties|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`(lockstep pause [^`]+)`")
WITHIN = 180.0

SOON = "refresh.topics.interval.seconds = 2"


class Reader:
    """Who follows the guide on two clusters."""

    def __init__(self, folder: Path, a: Broker, b: Broker) -> None:
        self.folder, self.a, self.b = folder, a.bootstrap, b.bootstrap
        self.file = folder / "mm2.properties"

    def write_file(self, text: str, *more: str) -> None:
        assert "a:9092" in text
        assert "b:9092" in text
        text = text.replace("a:9092", self.a).replace("b:9092", self.b)
        self.file.write_text("\n".join([text, ONE_BROKER, SOON, *more, ""]))

    def say(self, line: str, *, codes: tuple[int, ...] = (0,)) -> str:
        """Return what a command of the guide prints, with this file."""
        return run_guide_line(line, {"mm2.properties": str(self.file)}, codes=codes, within=WITHIN)

    def write(self, cluster: str, topic: str, *values: str) -> None:
        if topic not in topic_names(cluster):
            create_topic(cluster, topic, partitions=1)
        produce(cluster, topic, [Record(value=value.encode()) for value in values])

    def wait_has(self, cluster: str, topic: str, *values: str) -> None:
        wanted = sorted(value.encode() for value in values)

        def has_all() -> bool:
            return topic in topic_names(cluster) and values_of(cluster, topic) == wanted

        wait_until(has_all, within=WITHIN, every=0.5, what=f"{topic} has {values}")


def values_of(cluster: str, topic: str) -> list[bytes]:
    return sorted(record.value or b"" for record in read_topic(cluster, topic))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with two_brokers() as (a, b):
        yield Reader(tmp_path, a, b)


def test_rename_topics_guide_works_as_written(reader: Reader) -> None:
    page = GUIDE.read_text("utf-8")
    file, plan, router, meeting, both_ways = (text.strip() for text in BLOCK.findall(page))
    _renames(reader, file, plan, COMMAND.search(page))
    _is_the_same_as_its_router(reader, file, router)
    _leads_there_and_back(reader, file, both_ways)
    _meets(reader, meeting)


def _renames(reader: Reader, file: str, plan: str, pause: re.Match[str] | None) -> None:
    reader.write_file(file)
    for topic in ("orders-x", "payments", "plain"):
        reader.write(reader.a, topic, f"first of {topic}")
    planned = reader.say(plan, codes=(0, 1))
    assert re.search(r"eu\.orders\.x\b.*from orders-x", planned), planned
    assert re.search(r"eu\.payments\b.*from payments", planned), planned
    with lockstep_runs(reader.file):
        for topic, copy in (("orders-x", "eu.orders.x"), ("payments", "eu.payments"), ("plain", "plain")):
            reader.wait_has(reader.b, copy, f"first of {topic}")
        assert pause is not None, "the page has a command that names a topic"
        reader.say(f"{pause[1]} --wait")
        reader.say(f"{pause[1].replace('pause', 'resume')} --wait")
    assert not topic_names(reader.b) & {"orders-x", "payments"}


def _is_the_same_as_its_router(reader: Reader, file: str, router: str) -> None:
    """The copy goes on: no topic gets another name (LS035)."""
    (rename,) = (line for line in file.splitlines() if "lockstep.rename" in line)
    flow = Flow("A", "B")
    by_key = load(reader.file, {}).flow(flow).remote_topic("orders-x")
    reader.write_file(file.replace(rename, router))
    assert load(reader.file, {}).flow(flow).remote_topic("orders-x") == by_key == "eu.orders.x"


def _leads_there_and_back(reader: Reader, file: str, both_ways: str) -> None:
    (rename,) = (line for line in file.splitlines() if "lockstep.rename" in line)
    reader.write_file(file.replace(rename, both_ways), "topics = .*orders.*")
    with lockstep_runs(reader.file):
        reader.write(reader.a, "orders-x", "second on A")
        reader.write(reader.b, "eu.orders.x", "first on B")
        everything = ("first of orders-x", "second on A", "first on B")
        for cluster, topic in ((reader.a, "orders-x"), (reader.b, "eu.orders.x")):
            reader.wait_has(cluster, topic, *everything)
    assert "eu.orders.x" not in topic_names(reader.a)


def _meets(reader: Reader, meeting: str) -> None:
    reader.write_file(meeting)
    for topic in ("orders-de", "orders-fr"):
        reader.write(reader.a, topic, f"{topic} 1", f"{topic} 2")
    with lockstep_runs(reader.file):
        reader.wait_has(
            reader.b, "eu.orders", *(f"{topic} {n}" for topic in ("orders-de", "orders-fr") for n in (1, 2))
        )
