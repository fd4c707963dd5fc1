"""`lockstep legacy` as who has stopped a MirrorMaker 1 meets it: refused records, groups that are reset, kills.

MirrorMaker 1 itself: `tests/contract/test_live_mm1.py`."""

import uuid
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from lockstep_state.names import Flow, quarantine_topic
from tests.conftest import Pair
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    produce,
    read_topic,
    set_configs,
    topic_names,
)
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.mm1 import Legacy, LegacyFolder

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FLOW = Flow("source", "target")
until = partial(wait_until, within=180.0, every=0.5)


class Place:
    """A topic of one partition under one name on both clusters, and the group."""

    def __init__(self, folder: Path, pair: Pair, *options: str, rename: str = "") -> None:
        """`rename`: what the topic is called on the target, if not the same."""
        self.a, self.b = pair.a.bootstrap, pair.b.bootstrap
        self.topic = f"legacy-{uuid.uuid4().hex[:6]}"
        self.group = f"g-{self.topic}"
        create_topic(self.a, self.topic)
        self.remote = rename.format(topic=self.topic) or self.topic
        create_topic(self.b, self.remote)
        once = ("--include", self.topic, "--offset.commit.interval.ms=500", *options)
        producer = {"lockstep.rename": f"{self.topic} -> {self.remote}"} if rename else {}
        self.lockstep = Legacy(LegacyFolder.write(folder, self.a, self.b, self.group, *once, producer=producer))
        self.flow = MirroredFlow(FLOW, self.a, self.b, self.group)
        self._written = 0

    def write(self, count: int) -> None:
        produce(self.a, self.topic, [Record(value=b"%d" % n) for n in range(self._written, self._written + count)])
        self._written += count

    def copied(self) -> Counter[bytes]:
        return Counter(record.value or b"" for record in read_topic(self.b, self.remote))

    def wait_copied(self) -> None:
        until(lambda: len(self.copied()) == self._written, what="everything is copied")

    def committed(self) -> int | None:
        return committed_offset(self.a, self.group, self.topic, 0)

    def wait_committed(self) -> None:
        until(lambda: self.committed() == self._written, what="the group stands at the end")


def test_legacy_flow_begins_at_the_group_offset_and_a_kill_doubles_nothing(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair)
    place.write(100)
    commit_offset(place.a, place.group, place.topic, 0, 40)
    with place.lockstep:
        until(lambda: len(place.copied()) == 60, what="what the group has not read is copied")
        place.wait_committed()
        place.write(50)
        until(lambda: len(place.copied()) == 110, what="it goes on")
        place.lockstep.kill()
    assert set(place.copied().values()) == {1}

    with place.lockstep:
        place.write(10)
        until(lambda: len(place.copied()) == 120, what="it goes on after the kill")
        # A reset beside it is put right, and nothing comes twice.
        place.wait_committed()
        commit_offset(place.a, place.group, place.topic, 0, 5)
        place.wait_committed()
        until(lambda: place.flow.events("GroupPositionOverwritten"), what="it is told")
        place.write(10)
        until(lambda: len(place.copied()) == 130, what="it goes on after the reset")
        place.lockstep.stop()
    assert place.committed() == 170
    assert set(place.copied().values()) == {1}

    # A reset while it is away is obeyed, forwards and backwards.
    commit_offset(place.a, place.group, place.topic, 0, 150)
    with place.lockstep:
        until(lambda: place.copied().total() == 150, what="what lies behind the reset comes again")
        place.wait_committed()
        place.lockstep.stop()
    assert sorted(place.copied().values()) == [1] * 110 + [2] * 20
    assert [event.detail["begins"] for event in place.flow.events("GroupPositionObeyed")] == [150]


def test_renamed_legacy_flow_begins_at_the_group_offset(tmp_path: Path, pair: Pair) -> None:
    """The group's offsets are those of the source's topic, whatever the copy is called."""
    place = Place(tmp_path, pair, rename="eu.{topic}")
    place.write(100)
    commit_offset(place.a, place.group, place.topic, 0, 40)
    with place.lockstep:
        until(lambda: len(place.copied()) == 60, what="what the group has not read is copied")
        place.wait_committed()
        place.write(50)
        until(lambda: len(place.copied()) == 110, what="it goes on")
        place.lockstep.kill()
    with place.lockstep:
        place.write(10)
        until(lambda: len(place.copied()) == 120, what="it goes on after the kill")
        place.wait_committed()
        place.lockstep.stop()
    assert set(place.copied().values()) == {1}
    assert place.topic not in topic_names(place.b)


def test_a_refused_record_ends_the_run_and_where_it_may_go_on_is_put_aside(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair)
    set_configs(place.b, place.topic, {"max.message.bytes": "2000"})
    place.write(10)
    with place.lockstep:
        place.wait_copied()
        produce(place.a, place.topic, [Record(value=b"x" * 5000)])
        assert place.lockstep.wait(within=120) == 3
    said = place.lockstep.log.read_text()
    assert f"{place.topic}-0" in said
    assert "lockstep.legacy.abort.on.send.failure=true" in said
    assert len(place.copied()) == 10
    assert place.committed() == 10

    files = LegacyFolder(
        tmp_path, ["--include", place.topic, "--offset.commit.interval.ms=500", "--abort.on.send.failure", "false"]
    )
    place.lockstep = Legacy(files)
    with place.lockstep:
        place.write(5)
        until(lambda: len(place.copied()) == 15, what="it goes on behind the record")
        until(lambda: place.committed() == 16, what="the group goes past it")
        [row] = place.flow.progress(place.topic).values()
        assert row.quarantined == 1
        assert place.flow.events("BatchQuarantined")
        place.lockstep.stop()
    [kept] = read_topic(place.b, quarantine_topic(FLOW, place.group))
    assert kept.value == b"x" * 5000
