"""MM2's connectors call the source otherwise than the arrow does, or nothing at all: the real MM2 is taken over, handed
back and taken over again, and all three times finds its names and its progress."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_state.codecs.mm2_codec import decode_checkpoint
from lockstep_state.names import progress_topic
from tests.contract.takeover_flow import EVERY_SECOND, MORE, Moved, dedicated, equal, flushes
from tests.contract.turns import until
from tests.support.broker import Broker
from tests.support.clusters import admin, commit_offset, end_offsets
from tests.support.control import read_so_far
from tests.support.mirror import Mirror
from tests.support.mm2 import MirrorMaker
from tests.support.services import ServiceProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

OLD_WAY = ("replication.policy.separator =", "source.cluster.alias =", "target.cluster.alias =")


def progress_of(moved: Moved) -> set[str]:
    """By whose aliases the source connector's progress is kept."""
    keys = [json.loads(record.key) for record in read_so_far(moved.copy.b, progress_topic(moved.flow)) if record.key]
    return {partition["cluster"] for connector, partition in keys if connector == "MirrorSourceConnector"}


def is_translated(moved: Moved, group: str, checkpoints: str) -> None:
    """The group moves on the source, and a checkpoint of each partition says where."""
    places = {number: end - 50 for number, end in end_offsets(moved.copy.a, moved.copy.topic).items()}
    for number, offset in places.items():
        commit_offset(moved.copy.a, group, moved.copy.topic, number, offset)

    def there() -> bool:
        if checkpoints not in admin(moved.copy.b).list_topics(timeout=20).topics:
            return False
        written = [decode_checkpoint(r.key, r.value) for r in read_so_far(moved.copy.b, checkpoints)]
        ours = [one for one in written if one.group == group and one.topic == moved.copy.remote]
        return {one.partition: int(one.upstream) for one in ours} == places

    until(there, what=f"{group} has checkpoints in {checkpoints}")


@pytest.mark.parametrize("alias", ["", "dc1"])
def test_takeover_by_alias_there_and_back_and_again(
    tmp_path: Path, brokers: tuple[Broker, Broker], mark: str, alias: str
) -> None:
    names = OLD_WAY if not alias else (f"a{mark}.alias = {alias}-{mark}",)
    lines = [f"{what}.interval.seconds = 1" for what in EVERY_SECOND]
    moved = dedicated(tmp_path, brokers, mark, *names, *lines, flushes(mark), f"groups = reader-{mark}")
    cluster = alias and f"{alias}-{mark}"
    topic = moved.copy.topic
    moved = replace(moved, copy=replace(moved.copy, remote=f"{cluster}.{topic}" if alias else topic))
    checkpoints = f"{cluster}.checkpoints.internal" if alias else "checkpointsinternal"
    mirror = Mirror(moved.file, [moved.mirrored])
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            moved.copy.wait_for_more(MORE)
            is_translated(moved, f"reader-{mark}", checkpoints)
            mm2.stop()
            assert progress_of(moved) == {cluster}
            assert "in the same place" in moved.lockstep("takeover", "--yes")
            with mirror, ServiceProcess("lockstep_checkpoint", moved.file, str(moved.flow)):
                moved.copy.wait_for_more(MORE)
                is_translated(moved, f"reader-{mark}", checkpoints)
                assert "Start MirrorMaker 2 now" in moved.lockstep("handback", "--stop", "--yes")
            equal("MM2, Lockstep", moved)
            mm2.start()
            moved.copy.wait_for_more(MORE)
            mm2.stop()
        equal("MM2, Lockstep, MM2", moved)
        with mirror, ServiceProcess("lockstep_checkpoint", moved.file, str(moved.flow)):
            mirror.data_plane.hear("leading")  # it is who alters the offsets
            assert "lockstep resume" in moved.lockstep("takeover", "--yes")
            moved.lockstep("resume")
            moved.copy.wait_for_more(MORE)
            writing.close()
            moved.copy.wait_complete()
    equal("MM2, Lockstep, MM2, Lockstep", moved)
    assert progress_of(moved) == {cluster}
