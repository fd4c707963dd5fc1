"""The source is lost: what is lost with it is said before, and the way back brings what was written since."""

import re
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.support.broker import Broker
from tests.support.clusters import Record, end_offsets, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.runs import is_alive
from tests.support.switch_scene import WITHIN, SwitchScene
from tests.support.wire import set_quota

pytestmark = pytest.mark.long

SLOW, QUICK = 20_000.0, 50_000_000.0
"""Bytes a second that the target takes of the copy."""


def values(bootstrap: str, topic: str) -> set[str]:
    return {(record.value or b"").decode() for record in read_topic(bootstrap, topic)}


@pytest.mark.parametrize("identity", [False, True], ids=["prefixed", "identity"])
def test_failover_of_a_copy_that_is_up_to_date_loses_nothing(
    tmp_path: Path, brokers: tuple[Broker, Broker], identity: bool
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity)
    with scene.running():
        scene.app.go_on()
        refused = scene.switch("failover", code=1)
        assert "answers: use lockstep switchover" in refused["said"]
        scene.app.stop_when_read()
        scene.wait_written_down()
        scene.wait_translated()
        a.kill()
        done = scene.switch("failover")
        assert (done["phase"], done["lost"]) == ("done", 0), done
        assert all(group["known_until"] and group["known_until"] in group["text"] for group in done["groups"]), done
        assert done["source_known_until"]
        assert done["groups_known_until"]
        scene.app.go_on()
        a.start()
        back = scene.switch("failback", "--allow-soon", "--timeout", "120")
        assert (back["phase"], back["lost"], back["late"]) == ("done", 0, 0), back
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}


@pytest.mark.parametrize("diverged", ["copy", "leave"])
def test_failover_names_the_loss_and_failback_decides_about_it(
    tmp_path: Path, brokers: tuple[Broker, Broker], diverged: str
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, "lockstep.max.in.flight.bytes = 1048576", topics=1)
    (topic,) = scene.topics
    copy = f"{scene.there.source}.{topic}"
    client = f"{scene.there}|MirrorSourceConnector|replication-producer-0"
    with scene.running():
        scene.app.go_on()
        scene.app.stop_when_read()
        set_quota(b.bootstrap, client, producer_byte_rate=SLOW)
        bulk = [f"bulk {n} ".ljust(1_000, "x") for n in range(4_000)]
        produce(a.bootstrap, topic, [Record(value=value.encode(), partition=n % 3) for n, value in enumerate(bulk)])
        wait_until(lambda: ends_are_known(scene, topic), within=WITHIN, every=0.1, what="the rows know the ends")
        a.kill()
        set_quota(b.bootstrap, client, producer_byte_rate=QUICK)
        refused = scene.switch("failover", code=1)
        assert scene.last() is None
        (known,) = {int(number) for number in re.findall(r"Say --allow-data-loss (\d+)", refused["said"])}
        done = scene.switch("failover", "--allow-data-loss", str(known))
        missing = set(bulk) - values(b.bootstrap, copy)
        assert (done["phase"], done["lost"]) == ("done", len(missing)), done
        assert 0 < len(missing) <= known
        (where,) = [topic["partitions"] for topic in done["topics"]]
        assert sum(one["missing"] for one in where) == len(missing)
        assert all(one["missing_since"] for one in where if one["missing"])
        a.start()
        undecided = scene.switch("failback", "--allow-soon", code=1)
        assert f"has {len(missing):,} records that" in undecided["said"]
        back = scene.switch("failback", "--allow-soon", "--diverged", diverged)
        assert back["phase"] == "done", back
        is_there = missing <= values(b.bootstrap, copy)
        assert is_there is (diverged == "copy")
        written = {*bulk, *scene.app.written}  # acknowledged before we read; it goes on
        everywhere = values(a.bootstrap, topic) | values(a.bootstrap, f"{scene.back.source}.{topic}")
        assert written <= everywhere


def ends_are_known(scene: SwitchScene, topic: str) -> bool:
    ends = end_offsets(scene.a.bootstrap, topic)
    return {n: row.source_end for n, row in scene.flow_there.progress(topic).items()} == ends


def test_failback_that_leaves_records_moves_groups_exactly_by_name(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    """The same names on both sides: records that only A has are left there, and no group reads again what it read on
    B."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, "lockstep.max.in.flight.bytes = 1048576", identity=True, topics=1)
    (topic,) = scene.topics
    client = f"{scene.there}|MirrorSourceConnector|replication-producer-0"
    with scene.running():
        scene.app.go_on()
        scene.app.stop_when_read()
        scene.wait_written_down()
        scene.wait_translated()
        set_quota(b.bootstrap, client, producer_byte_rate=SLOW)
        bulk = [f"bulk {n} ".ljust(1_000, "x") for n in range(2_000)]
        produce(a.bootstrap, topic, [Record(value=value.encode(), partition=n % 3) for n, value in enumerate(bulk)])
        wait_until(lambda: ends_are_known(scene, topic), within=WITHIN, every=0.1, what="the rows know the ends")
        a.kill()
        set_quota(b.bootstrap, client, producer_byte_rate=QUICK)
        done = scene.switch("failover", "--allow-data-loss", str(len(bulk)))
        missing = set(bulk) - values(b.bootstrap, topic)
        assert missing
        assert done["lost"] == len(missing)
        scene.app.go_on()
        a.start()
        back = scene.switch("failback", "--allow-soon", "--diverged", "leave", "--timeout", "120")
        (group,) = back["groups"]
        assert (back["phase"], group["state"], group["read_again"]) == ("done", "exact", 0), back
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}
        assert not missing & values(b.bootstrap, topic)


def test_failover_after_a_time_of_frozen_services_wants_consent(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    """The groups were read before that time: which there are now, and where, is not known to anybody."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b)
    with scene.running():
        scene.app.go_on()
        scene.app.stop_when_read()
        scene.wait_translated()
        checkpoint = psutil.Process(scene.run.service_pid("checkpoint"))
        checkpoint.suspend()
        frozen_at = datetime.now(UTC)
        scene.start_on(scene.there.source)
        scene.app.go_on(800)
        scene.app.stop_when_read()
        wait_until(lambda: (datetime.now(UTC) - frozen_at).total_seconds() > 12.0, what="it is long ago")
        a.kill()
        checkpoint.resume()
        allowed = ("--allow-data-loss", "100000")
        refused = scene.switch("failover", *allowed, code=1)
        assert "(groups-stale). Say --allow-stale-groups" in refused["said"]
        assert "groups that appeared since are not known" in refused["said"]
        assert datetime.fromisoformat(refused["groups_known_until"]) <= frozen_at
        looked = scene.switch("failover", *allowed, "--allow-stale-groups", "--dry-run")
        assert looked["refusals"] == []
        assert datetime.fromisoformat(looked["groups_known_until"]) <= frozen_at
        assert datetime.fromisoformat(looked["source_known_until"]) > frozen_at, "the data plane went on"


def test_failback_after_a_kill_of_slots_names_no_copy_as_diverged(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    """What the way back has copied in the last second is in no row yet."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=True, topics=1)
    with scene.running():
        scene.app.go_on()
        scene.app.stop_when_read()
        scene.wait_written_down()
        scene.wait_translated()
        a.kill()
        assert scene.switch("failover")["phase"] == "done"
        a.start()
        scene.app.go_on()
        wait_until(lambda: copies(scene), within=WITHIN, every=0.2, what="the way back copies")
        for worker in workers(scene):
            worker.kill()
        looked = scene.switch("failback", "--dry-run", "--allow-soon", code=0)
        assert looked["refusals"] == []
        scene.app.go_on()


def copies(scene: SwitchScene) -> bool:
    """Whether all that was written on B is on A, or was a moment ago."""
    (topic,) = scene.topics
    there, here = end_offsets(scene.b.bootstrap, topic), end_offsets(scene.a.bootstrap, topic)
    return all(here[number] > end - 200 for number, end in there.items())


def workers(scene: SwitchScene) -> list[psutil.Process]:
    """The processes in which slots run."""
    processes = scene.run.family()
    return [process for process in processes if is_alive(process) and "pyspark_daemon" in " ".join(process.cmdline())]
