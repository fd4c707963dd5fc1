"""MM2 mirrors, is stopped in order, and we go on from the same file; and back again (`mm2-behaviour.md` §1.1, §1.7).

Nothing but the file and what each side leaves in Kafka carries the place over: `mm2-offsets.A.internal`. A writer does
not stop meanwhile, and every record bears its number.
"""

import uuid
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from tests.contract.turns import NumberedCopy
from tests.faults.numbered import Writer
from tests.support.broker import Broker
from tests.support.clusters import create_topic
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.mm2 import MirrorMaker
from tests.support.services import two_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS = 4
RATE = 2_000
MORE = 4_000
"""Records that each of them copies before the next one's turn."""

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
ROUTER = (
    "transforms = router",
    "transforms.router.type = org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.router.regex = (.*-numbers)",
    "transforms.router.replacement = eu.$1",
)
POLICIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "renamed": ("org.apache.kafka.connect.mirror.DefaultReplicationPolicy", "{source}.{topic}", ()),
    "same-names": (IDENTITY, "{topic}", ()),
    "routed": (IDENTITY, "eu.{topic}", ROUTER),
}


class Turns:
    """One flow, which either side mirrors in turn."""

    def __init__(self, folder: Path, brokers: tuple[Broker, Broker], policy: str) -> None:
        mark = uuid.uuid4().hex[:6]
        self.a, self.b = (broker.bootstrap for broker in brokers)
        flow = Flow(f"a{mark}", f"b{mark}")
        kind, named, transforms = POLICIES[policy]
        self.topic = f"{mark}-numbers"
        self.copy = NumberedCopy(self.a, self.b, self.topic, named.format(source=flow.source, topic=self.topic))
        self.file = two_cluster_file(
            folder,
            (flow.source, self.a),
            (flow.target, self.b),
            f"{flow}.enabled = true",
            f"{flow}.topics = {mark}-.*",
            f"replication.policy.class = {kind}",
            "emit.heartbeats.enabled = false",
            "emit.checkpoints.enabled = false",
            "tasks.max = 2",
            *(f"{flow}.{line}" for line in transforms),
            *(
                f"{topic}.replication.factor = 1"
                for topic in ("offset-syncs.topic", "checkpoints.topic", "status.storage", "config.storage")
            ),
        )
        self.mm2 = MirrorMaker(self.file)
        self.mirror = Mirror(self.file, [MirroredFlow(flow, self.a, self.b)])
        create_topic(self.a, self.topic, partitions=PARTITIONS)
        if transforms:  # MirrorMaker 2 creates the topic of the policy's name only
            create_topic(self.b, self.copy.remote, partitions=PARTITIONS)


@pytest.mark.parametrize("policy", POLICIES)
def test_lockstep_and_mm2_continue_where_the_other_stopped(
    tmp_path: Path, brokers: tuple[Broker, Broker], policy: str
) -> None:
    """MM2, Lockstep, MM2: nothing is lost and nothing doubled when we take over, nor when we hand back.

    Starting once more without `lockstep takeover` would double what MM2 copied meanwhile: our own rows count before
    its progress."""
    turns = Turns(tmp_path, brokers, policy)
    with ExitStack() as writing:
        log = tmp_path / "writer.log"
        writing.enter_context(Writer(turns.a, turns.topic, partitions=PARTITIONS, rate=RATE, log=log))
        with turns.mm2 as mm2:
            turns.copy.wait_for_more(MORE)
            mm2.stop()
        counts = [turns.copy.counted()]
        with turns.mirror as mirror:
            turns.copy.wait_for_more(MORE)
            assert mirror.data_plane.stop(within=60) == 0
            assert mirror.topic_sync.stop() == 0
        counts.append(turns.copy.counted())
        with turns.mm2 as mm2:
            turns.copy.wait_for_more(MORE)
            writing.close()
            turns.copy.wait_complete()
            mm2.stop()
        counts.append(turns.copy.counted())
    assert [(one.lost, one.doubled, one.displaced) for one in counts] == [(0, 0, 0)] * 3, counts
    assert all(later.records - before.records >= MORE for before, later in pairwise(counts)), counts
