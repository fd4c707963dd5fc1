"""Groups at the end of what they read, moved on the target behind what the data plane really copied."""

import uuid

import pytest

from tests.support.clusters import Record, admin, commit_offset, committed_offset, create_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess

WITHIN = 90.0


@pytest.mark.long
def test_mm2_167_168_groups_stand_at_the_very_end_and_never_beyond_it(
    mirror: Mirror, there: MirroredFlow, committed: MirroredFlow
) -> None:
    """With `offset.lag.max` 100 and with 0 alike, which is nearer than MirrorMaker 2 comes with the first."""
    mark = uuid.uuid4().hex[:6]
    topics = {there: f"there-end-{mark}", committed: f"committed-end-{mark}"}
    with ServiceProcess("lockstep_checkpoint", mirror.config, *map(str, topics)) as process:
        for round_ in (1, 2):
            for flow, topic in topics.items():
                if round_ == 1:
                    create_topic(flow.source, topic)
                produce(flow.source, topic, [Record(value=b"%d" % n) for n in range(333)])
                flow.wait_copied(topic)
                commit_offset(flow.source, f"end-{topic}", topic, 0, end_offsets(flow.source, topic)[0])
            for flow, topic in topics.items():
                end = end_offsets(flow.target, flow.remote(topic))[0]
                assert end == 333 * round_

                seen: list[int] = []

                def at_the_end(flow: MirroredFlow = flow, topic: str = topic, seen: list[int] = seen) -> bool:
                    seen.append(committed_offset(flow.target, f"end-{topic}", flow.remote(topic), 0) or 0)
                    return seen[-1] >= end_offsets(flow.target, flow.remote(topic))[0]

                wait_until(at_the_end, within=WITHIN, every=0.2, what=f"the group is at {end} of {topic}")
                assert max(seen) == end, "never beyond it"
        assert process.running
    for flow, topic in topics.items():
        assert f"{flow.flow.target}.{topic}" not in admin(flow.source).list_topics(timeout=30.0).topics
