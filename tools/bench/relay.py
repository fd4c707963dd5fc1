"""`python -m tools.bench.relay FILE`: the least that a mirror does, for the flow A->B of a file. The limit of latency.

It fetches, and sends each batch on as it is, over one connection to each cluster. It uses the requests of the data
plane, and does nothing else: no batch is checked, counted, or sent a second time, and nothing says how far it is. So a
mirror's own work is what its latency has beyond this one's.
"""

import argparse
import asyncio
import re
from collections import defaultdict, deque
from datetime import timedelta
from pathlib import Path
from typing import Any

from lockstep_config import load
from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.record_batch.layout import scan
from lockstep_kafka.messages.fetch_codec import fetch_request, read_response, topic_names
from lockstep_kafka.messages.fetch_session import FetchPosition, FetchSession
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.messages.produce_codec import NO_ERROR, produce_request
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_kafka.wire.connection import Connection
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from tools.bench.clusters import Clusters
from tools.bench.wire import BrokerRefused

FETCH = FetchSettings()
PRODUCE_TIMEOUT = timedelta(seconds=30)
NO_OFFSET = bytes(8)
"""A batch is sent with base offset 0. The broker writes the one that it gets."""


class Relay:
    """A topic's partitions, from their beginning on, from one broker to another."""

    def __init__(self, source: Connection, target: Connection, topic: str, to: dict[int, PartitionLeader]) -> None:
        """`to`: of each partition its leader on the target."""
        self._source, self._target = source, target
        self._remote, self._to = f"A.{topic}", to
        self._session = FetchSession()
        self._next: dict[TopicPartition, FetchPosition] = {}
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, wanted: list[FetchPosition]) -> None:
        """Relay for ever. Raises BrokerRefused, BrokerUnreachable, KafkaConnectionError."""
        self._next = {partition[0]: partition for partition in wanted}
        self._names = topic_names(wanted)
        self._fetch(wanted)
        await self._ended

    def _fetch(self, moved: list[FetchPosition]) -> None:
        plan = self._session.plan_moved(moved) or self._session.plan([*self._next.values()])
        request = fetch_request(self._source.version("fetch"), plan.changed, FETCH, session=plan)
        self._source.send(request, self._fetched).add_done_callback(self._end_if_failed)

    def _fetched(self, answer: Any) -> None:
        """Send on what an answer has, as soon as it is read."""
        moved: list[FetchPosition] = []
        batches: dict[TopicPartition, deque[bytes]] = defaultdict(deque)
        for fetched in read_response(self._next, answer, self._names):
            if fetched.code:
                raise BrokerRefused(f"fetch of {fetched.tp[0]}-{fetched.tp[1]}: error {fetched.code}")
            for batch in scan(fetched.records):
                batches[self._remote, fetched.tp[1]].append(NO_OFFSET + batch.data[8:])
                tp, leader, _, before = self._next[fetched.tp]
                self._next[fetched.tp] = (tp, leader, batch.last_offset + 1, before)
            if fetched.records:
                moved.append(self._next[fetched.tp])
        self._session.answered(answer.session_id)
        while batches:
            each = [(tp, self._to[tp[1]], queue.popleft()) for tp, queue in batches.items()]
            request = produce_request(self._target.version("produce"), each, PRODUCE_TIMEOUT)
            self._target.send(request, self._appended).add_done_callback(self._end_if_failed)
            batches = {tp: queue for tp, queue in batches.items() if queue}
        self._fetch(moved)

    def _appended(self, answer: Any) -> None:
        for topic in answer.responses:
            for appended in topic.partition_responses:
                if appended.error_code is not NO_ERROR:
                    raise BrokerRefused(f"produce to {self._remote}-{appended.index}: {appended.error_code}")

    def _end_if_failed(self, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled() and (trouble := answer.exception()) is not None and not self._ended.done():
            self._ended.set_exception(trouble)


async def _leaders(cluster: ClusterClient, topic: str) -> dict[int, PartitionLeader]:
    await cluster.refresh([topic])
    return {number: cluster.require_leader((topic, number)) for number in range(cluster.partitions(topic))}


async def _run(file: Path) -> None:
    settings = load(file, {}).flow(Flow("A", "B"))
    (topic,) = re.findall(r"(?m)^A->B\.topics *= *(\S+)", file.read_text())
    source = connect_cluster("A", settings.source.properties, "relay")
    target = connect_cluster("B", settings.target.properties, "relay")
    read_from = await _leaders(source, topic)
    clusters = Clusters(settings.source.bootstrap, settings.target.bootstrap)
    clusters.create(clusters.target, f"A.{topic}", len(read_from))
    to = await _leaders(target, f"A.{topic}")
    relay = Relay(
        await source.connection(read_from[0].broker, "fetch"),
        await target.connection(to[0].broker, "produce"),
        topic,
        to,
    )
    await relay.run([((topic, number), leader, 0, -1) for number, leader in read_from.items()])


def main() -> None:
    """Relay until a signal ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.relay", description=__doc__)
    parser.add_argument("file", type=Path, help="with the flow A->B of one topic, between clusters of one broker each")
    asyncio.run(_run(parser.parse_args().file))


if __name__ == "__main__":
    main()
