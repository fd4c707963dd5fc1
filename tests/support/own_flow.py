"""A flow of a test's own between two clusters that other tests use too."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import Row
from tests.support.broker import Broker
from tests.support.clusters import Record, admin, produce
from tests.support.proxy import Proxy
from tests.support.services import one_flow_file


@dataclass(frozen=True, slots=True)
class OwnFlow:
    """Its topics are `MARK-.*`, and its aliases end with its mark. `source` and `target` are addresses."""

    flow: Flow
    file: Path
    mark: str
    source: str
    target: str

    @classmethod
    def between(cls, source: Broker | Proxy, target: Broker | Proxy, folder: Path, mark: str, *lines: str) -> Self:
        """Return a flow whose file is in the folder and also has these lines."""
        flow, a, b = Flow(f"s{mark}", f"t{mark}"), source.bootstrap, target.bootstrap
        return cls(flow, one_flow_file(folder, flow, mark, a, b, *lines), mark, a, b)

    def names(self) -> list[set[str]]:
        """Return all topics of both clusters, but for the one that Kafka makes when it is asked about a group."""
        clusters = (admin(bootstrap).list_topics(timeout=10) for bootstrap in (self.source, self.target))
        return [set(cluster.topics) - {"__consumer_offsets"} for cluster in clusters]

    def write(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write keys and values to a topic of the target."""
        produce(self.target, topic, [Record(key=key, value=value) for key, value in records])

    def write_rows(self, *rows: Row) -> None:
        self.write(state_topic(self.flow), [row.encode() for row in rows])
