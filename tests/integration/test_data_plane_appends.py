"""What comes between our appends, and what does not come behind one that the target refuses for good (`architecture.md`
§5, "An append is a compare-and-swap")."""

import os
import time
from collections.abc import Callable

import pytest

from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_state.names import quarantine_topic
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.offset_truth import exact_places
from tests.support.proxy import Proxy

SOON = 60.0
DAY_MS = 86_400_000
ALONE = {"linger.ms": "0", "batch.num.messages": "1"}
COMPACTED = {"cleanup.policy": "compact"}
SMALL = {"max.message.bytes": "20000"}
OF_NOW = {"message.timestamp.after.max.ms": "3600000"}
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}


def test_foreign_records_in_between_are_named_and_the_copy_continues(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-foreign"))
    remote = ""
    sent: list[Record] = []
    for turn, theirs in enumerate((3, 1, 0)):
        more = [Record(key=b"k", value=b"ours %d-%d" % (turn, n)) for n in range(20)]
        produce(there.source, topic, more)
        sent += more
        remote = there.wait_mirrored(topic).target_topic
        wait_end(there, remote, len(sent) + (0, 3, 4)[turn])
        produce(there.target, remote, [Record(value=b"theirs %d-%d" % (turn, n)) for n in range(theirs)])
    copies = read_topic(there.target, remote)
    assert [r.value for r in copies if not (r.value or b"").startswith(b"theirs")] == [r.value for r in sent]
    wait_until(lambda: len(there.events("ForeignWrite", remote)) == 2, within=SOON, every=0.1)
    foreign_writes = [
        (e.subject, e.detail["records"], e.detail["before"]) for e in there.events("ForeignWrite", remote)
    ]
    assert foreign_writes == [(f"{remote}-0", 3, 23), (f"{remote}-0", 1, 44)]
    there.wait_written_down(topic)
    upstream = {r.same_as()[:2]: r.offset or 0 for r in read_topic(there.source, topic)}
    copied = [(upstream[r.same_as()[:2]], r.offset or 0, 1) for r in copies if r.same_as()[:2] in upstream]
    run_map = RunMap.build(there.progress(topic)[0], [row for row in there.rows(OffsetRuns) if row.topic == topic])
    places = exact_places(copied)
    translated = {at: run_map.translate(UpstreamOffset(at)) for at in places}
    assert {at: t and t.downstream for at, t in translated.items()} == places
    assert there.events("PartitionHalted", topic) == []


def wait_end(flow: MirroredFlow, remote: str, end: int) -> None:
    wait_until(lambda: end_offsets(flow.target, remote)[0] == end, within=SOON, every=0.05, what=f"it ends at {end}")


def good(first: int, count: int) -> list[Record]:
    """Too large to be merged: each goes in a request of its own."""
    return [Record(key=b"k%d" % n, value=b"%d " % n + os.urandom(6_000)) for n in range(first, first + count)]


def keyless() -> Record:
    return Record(value=b"no key" + os.urandom(6_000))


def too_late() -> Record:
    return Record(b"k", b"late" + os.urandom(6_000), timestamp_ms=time.time_ns() // 1_000_000 + 2 * DAY_MS)


def too_large() -> Record:
    return Record(b"k", os.urandom(30_000))


@pytest.mark.parametrize("policy", ["halt", "quarantine"])
@pytest.mark.parametrize(
    ("bad", "target"),
    [
        pytest.param(keyless, COMPACTED, id="87"),
        pytest.param(too_late, OF_NOW, id="32", marks=pytest.mark.long),
        pytest.param(too_large, SMALL, id="10", marks=pytest.mark.long),
    ],
)
def test_append_behind_a_refused_batch_waits_for_the_decision(
    there: MirroredFlow, proxy_b: Proxy, policy: str, bad: Callable[[], Record], target: dict[str, str]
) -> None:
    """It is one of several that are on their way: those in front of it land, those behind it must not."""
    topic = unique_name(f"there-{policy}")
    remote = there.remote(topic)
    create_topic(there.target, remote, configs=ANY_TIME | target)
    create_topic(there.source, topic, configs=ANY_TIME)
    produce(there.source, topic, good(0, 3), settings=ALONE)
    there.wait_copied(topic)
    refused = bad()
    behind = good(5, 6)
    proxy_b.hold(requests=False, answers=True)  # whatever is sent now is sent without an answer to the one before it
    produce(there.source, topic, [*good(3, 2), refused, *behind], settings=ALONE)
    wait_end(there, remote, 5)
    proxy_b.heal()
    wanted = read_topic(there.source, topic)
    if policy == "halt":
        halted = there.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
        assert (halted.detail["upstream"], end_offsets(there.target, remote)[0]) == (4, 5)
        wanted = wanted[:5]
    else:
        there.wait_written_down(topic)
        wanted = [r for r in wanted if r.value != refused.value]
        kept = [r for r in read_topic(there.target, quarantine_topic(there.flow)) if r.value == refused.value]
        assert [dict(r.headers)["lockstep.offset"] for r in kept] == [b"5"]
        (event,) = there.events("BatchQuarantined", f"{topic}-0")
        assert event.detail["ranges"] == [[5, 5]]
    assert [r.same_as() for r in read_topic(there.target, remote)] == [r.same_as() for r in wanted]
    assert there.events("ForeignWrite", remote) == []
