"""Two flows bring a topic of one name to one target: a group of both sources skips no record of either there."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.broker import Broker, started
from tests.support.checkpoint_scene import commit
from tests.support.clusters import Record, committed_offset, create_topic, produce, read_topic, unique_name
from tests.support.commands import lockstep
from tests.support.control import last_row
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

until = partial(wait_until, within=120.0, every=0.25)
HALF = 50
"""Records of each source in each of two parts of the log on the target."""

LINES = (
    "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    *("replication.factor = 1", "offset.storage.replication.factor = 1", "offset-syncs.topic.replication.factor = 1"),
    *("checkpoints.topic.replication.factor = 1", "emit.heartbeats.enabled = false", "sync.topic.acls.enabled = false"),
    *("sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1"),
    *("emit.checkpoints.interval.seconds = 1", "tasks.max = 1"),
)


def test_group_of_two_sources_skips_no_record_of_either(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    """The group has read 60 records on A and 20 on C. Its place by A's flow is behind most records of C."""
    topic, group = unique_name("orders"), unique_name("billing")
    source, other, target = unique_name("a"), unique_name("c"), unique_name("b")
    broker_c = Broker("C")
    with started(broker_c):
        at = {source: broker_a.bootstrap, other: broker_c.bootstrap, target: broker_b.bootstrap}
        read = {source: 60, other: 20}
        flows = [Flow(alias, target) for alias in read]
        for alias in read:
            create_topic(at[alias], topic)
        file = tmp_path / "mm2.properties"
        lines = [f"clusters = {', '.join(at)}", *(f"{alias}.bootstrap.servers = {at[alias]}" for alias in at), *LINES]
        lines += [*(f"{flow}.enabled = true" for flow in flows), f"topics = {topic}", f"groups = {group}"]
        file.write_text("\n".join(lines) + "\n")
        copied = [MirroredFlow(flow, at[flow.source], at[target]) for flow in flows]
        names = [str(flow) for flow in flows]
        with Mirror(file, copied), ServiceProcess("lockstep_checkpoint", file, *names):
            for part in range(2):  # so that the log on the target has records of both sources in turn
                for alias in read:
                    values = [f"{alias} {n}" for n in range(part * HALF, (part + 1) * HALF)]
                    produce(at[alias], topic, [Record(value=value.encode(), partition=0) for value in values])
                copies = len(read) * HALF * (part + 1)
                until(partial(is_as_long, at[target], topic, copies))
            for alias, offset in read.items():
                commit(broker_a if alias == source else broker_c, group, topic, 0, offset)
            place = until(partial(placed, at[target], topic, flows, group))
            until(lambda: any(row.is_contested for row in rows(at[target], flows, group)))
            assert skipped(at[target], topic, committed_offset(at[target], group, topic, 0) or 0, read) == []
            (contested,) = (flow for flow in flows if any(row.is_contested for row in rows(at[target], [flow], group)))
            said = lockstep("switchover", file, "--flow", str(contested), "--dry-run", code=1)
            assert "(group-contested). Say --allow-left-groups" in said
            for alias in read:
                read[alias] = 2 * HALF
                commit(broker_a if alias == source else broker_c, group, topic, 0, read[alias])
            until(lambda: (committed_offset(at[target], group, topic, 0) or 0) > place, what="the group goes on")
            assert skipped(at[target], topic, committed_offset(at[target], group, topic, 0) or 0, read) == []


def test_group_of_flows_in_two_files_skips_no_record_of_either(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    """Neither process has the other flow in its file. Each finds the state topic of the other one on the target."""
    topic, group = unique_name("orders"), unique_name("billing")
    source, other, target = unique_name("a"), unique_name("c"), unique_name("b")
    broker_c = Broker("C")
    with started(broker_c), ExitStack() as stack:
        at = {source: broker_a.bootstrap, other: broker_c.bootstrap, target: broker_b.bootstrap}
        read, flows = {source: 60, other: 20}, [Flow(alias, target) for alias in (source, other)]
        for flow in flows:
            create_topic(at[flow.source], topic)
            file = tmp_path / f"{flow.source}.properties"
            ends = (flow.source, flow.target)
            lines = [f"clusters = {', '.join(ends)}", *(f"{end}.bootstrap.servers = {at[end]}" for end in ends), *LINES]
            lines += [f"{flow}.enabled = true", f"topics = {topic}", f"groups = {group}"]
            file.write_text("\n".join(lines) + "\n")
            stack.enter_context(Mirror(file, [MirroredFlow(flow, at[flow.source], at[target])]))
            stack.enter_context(ServiceProcess("lockstep_checkpoint", file, str(flow)))
        for part in range(2):
            for alias in read:
                values = [f"{alias} {n}" for n in range(part * HALF, (part + 1) * HALF)]
                produce(at[alias], topic, [Record(value=value.encode(), partition=0) for value in values])
            until(partial(is_as_long, at[target], topic, len(read) * HALF * (part + 1)))
        for alias, offset in read.items():
            commit(broker_a if alias == source else broker_c, group, topic, 0, offset)
        until(partial(placed, at[target], topic, flows, group))
        until(lambda: any(row.is_contested for row in rows(at[target], flows, group)))
        assert skipped(at[target], topic, committed_offset(at[target], group, topic, 0) or 0, read) == []


def placed(bootstrap: str, topic: str, flows: list[Flow], group: str) -> int | None:
    """Return where the group is on the target; an error names what both flows say of it."""
    offset = committed_offset(bootstrap, group, topic, 0)
    assert offset, [
        (row.phase, row.positions, row.waits, row.stated_held_cause) for row in rows(bootstrap, flows, group)
    ]
    return offset


def rows(bootstrap: str, flows: list[Flow], group: str) -> list[GroupStatus]:
    every = (last_row(bootstrap, flow, f"group/{group}") for flow in flows)
    return [row for row in every if isinstance(row, GroupStatus)]


def is_as_long(bootstrap: str, topic: str, records: int) -> bool:
    return len(read_topic(bootstrap, topic)) == records


def skipped(bootstrap: str, topic: str, place: int, read: dict[str, int]) -> list[bytes]:
    """Return the records before the group's place on the target that it has not read on their source."""
    before = [record.value or b"" for record in read_topic(bootstrap, topic)[:place]]
    done = {f"{alias} {n}".encode() for alias, end in read.items() for n in range(end)}
    return [value for value in before if value not in done]
