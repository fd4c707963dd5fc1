"""The row of the state topic about the capabilities of a cluster. Import it from `state_rows`."""

from dataclasses import dataclass

from lockstep_state.rows.row import Row, row_kind


@row_kind("cluster", owner="topic-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCapabilities(Row):
    """The capabilities of one cluster of the flow, as its brokers announce and answer. Owner: topic-sync."""

    alias: str
    cluster_id: str = ""
    product: str = ""
    """The probable product: `Kafka 3.9`, `Redpanda`, `unknown`. For people."""
    lacks: tuple[str, ...] = ()
    """Requests that the flow does without on this cluster, by Kafka's names."""
    refuses: tuple[str, ...] = ()
    """Requests of `lacks` that the brokers announce, but refuse or answer by closing the connection."""

    def identity(self) -> tuple[str, ...]:
        return (self.alias,)
