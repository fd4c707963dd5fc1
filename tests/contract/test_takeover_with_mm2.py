"""`lockstep takeover` and `handback` with the real MM2 on the other side, while a writer goes on (`mm2-behaviour.md`
§1.7).

Every record bears its number, so that what is lost or doubled can be counted. Each test prints its figures (`-rP`);
those in `docs/guides/migrate-from-mm2.md` are from here.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from tests.contract.takeover_flow import MORE, PARTITIONS, STRIMZI, Moved, dedicated, equal, flushes, plan_of, say
from tests.contract.turns import until
from tests.support.broker import Broker
from tests.support.mirror import Mirror
from tests.support.mm2 import ConnectWorker, MirrorMaker
from tests.support.services import two_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_dedicated_there_and_back_and_there_again(tmp_path: Path, brokers: tuple[Broker, Broker], mark: str) -> None:
    """Stopped in order each time, so that nothing is lost and nothing doubled."""
    moved = dedicated(tmp_path, brokers, mark, "emit.checkpoints.enabled = false")
    mirror = Mirror(moved.file, [moved.mirrored])
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            moved.copy.wait_for_more(MORE)
            moved.refused_while_it_runs()
            mm2.stop()
            assert "in the same place" in moved.lockstep("takeover", "--yes")
            equal("MM2", moved)
            with mirror:
                moved.copy.wait_for_more(MORE)
                assert "Start MirrorMaker 2 now" in moved.lockstep("handback", "--stop", "--yes")
            equal("MM2, Lockstep", moved)
            mm2.start()
            moved.copy.wait_for_more(MORE)
            mm2.stop()
        equal("MM2, Lockstep, MM2", moved)
        with mirror:
            mirror.data_plane.hear("leading")  # it is who alters the offsets
            assert "lockstep resume" in moved.lockstep("takeover", "--yes")
            moved.lockstep("resume")
            moved.copy.wait_for_more(MORE)
            writing.close()
            moved.copy.wait_complete()
    equal("MM2, Lockstep, MM2, Lockstep", moved)


# -- a Connect cluster with Strimzi's names ----------------------------------------------------------------------------


def source_connector(moved: Moved) -> Mapping[str, str]:
    return {
        "source.cluster.alias": moved.flow.source,
        "target.cluster.alias": moved.flow.target,
        "source.cluster.bootstrap.servers": moved.copy.a,
        "target.cluster.bootstrap.servers": moved.copy.b,
        "topics": moved.copy.topic,
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }


def test_strimzi_both_ways(tmp_path: Path, brokers: tuple[Broker, Broker], mark: str) -> None:
    """A worker beside each target, as Strimzi has them. One is ended, the other runs on with its connector stopped.
    Both are taken over into the flow's own place and handed back from there."""
    a, b = (broker.bootstrap for broker in brokers)
    flow = Flow(f"a{mark}", f"b{mark}")
    back = Flow(flow.target, flow.source)
    file = two_cluster_file(
        tmp_path,
        (flow.source, a),
        (flow.target, b),
        *(f"{one}.enabled = true" for one in (flow, back)),
        f"topics = {mark}-.*",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "sync.topic.acls.enabled = false",
        "tasks.max = 2",
        "offset-syncs.topic.replication.factor = 1",
    )
    there = Moved.create(flow, file, a, b, mark)
    here = Moved.create(back, file, b, a, mark)
    names = ("--offsets-topic", f"{STRIMZI}-offsets", "--connector", here.connector, "--group", STRIMZI)
    shared = ("--from", "connect", *names, "--connector-stopped")
    folders = [tmp_path / name for name in ("at-b", "at-a")]
    with ExitStack() as writing, ExitStack() as working:
        at_b, at_a = (
            working.enter_context(_worker(folder, one)) for folder, one in zip(folders, (there, here), strict=True)
        )
        for one, worker in ((there, at_b), (here, at_a)):
            writing.enter_context(one.writer(tmp_path))
            worker.run(one.connector, "MirrorSourceConnector", source_connector(one))
        for one in (there, here):
            one.copy.wait_for_more(MORE)
            one.refused_while_it_runs("--from", "strimzi")
        at_a.stop_connector(here.connector)
        here.lockstep("takeover", *shared, "--yes")
        at_b.stop()
        there.lockstep("takeover", "--from", "strimzi", "--yes")
        with Mirror(file, [there.mirrored, here.mirrored]):
            for one in (there, here):
                one.copy.wait_for_more(MORE)
            there.lockstep("handback", "--stop", "--yes")
            here.lockstep("handback", "--stop", "--yes", "--connector-stopped")
        for one in (there, here):
            equal("MM2, Lockstep", one)
        at_b.start()
        at_a.resume_connector(here.connector)
        for one in (there, here):
            one.copy.wait_for_more(MORE)
        writing.close()
        for one in (there, here):
            one.copy.wait_complete()
            equal("MM2, Lockstep, MM2", one)


def _worker(folder: Path, moved: Moved) -> ConnectWorker:
    folder.mkdir()
    return ConnectWorker(folder, moved.copy.b, STRIMZI)


# -- killed ------------------------------------------------------------------------------------------------------------


def test_takeover_from_a_killed_mm2_doubles_its_last_records_loses_none(
    tmp_path: Path, brokers: tuple[Broker, Broker], mark: str
) -> None:
    """Its workers are members until their session ends (10 s). By default it writes every minute; here more often."""
    moved = dedicated(tmp_path, brokers, mark, "emit.checkpoints.enabled = false", flushes(mark))
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            until(lambda: len(moved.mirrored.mm2_progress(moved.copy.topic)) == PARTITIONS, what="MM2 has flushed")
            moved.copy.wait_for_more(MORE)
            mm2.kill()
        moved.refused_while_it_runs(modes=["--dry-run"])
        plan = until(lambda: plan_of(moved), what="the killed one's session ends")
        assert any("If it was killed, records that it copied after it wrote last are copied again" in n for n in plan)
        moved.lockstep("takeover", "--yes")
        since = moved.not_written_down()
        with Mirror(moved.file, [moved.mirrored]):
            moved.copy.wait_for_more(since + MORE)
            writing.close()
            moved.copy.wait_complete()
    count = moved.copy.counted()
    say(f"MM2 killed {since} records after it wrote, Lockstep", count)
    assert (count.lost, count.doubled, count.displaced) == (0, since, 0)
    assert since > 0, "there was something to double"
