"""The filter by origin of one flow's source, for a reader that copies nothing (`kafka-wire.md` §4)."""

from collections.abc import Iterable

from lockstep_config import FlowSettings
from lockstep_data_plane.core.provenance import ProvenanceRule, batches_with_records, origins_by_producer
from lockstep_data_plane.provenance.origin_lookup import KNOWN_AT_MOST, OriginRows, state_topics
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_runtime.state.unreadable_records import PassOver


class OriginFilter:
    """The origins of batches, for a reader: `look_up` the batches, then call `copies`."""

    def __init__(
        self, settings: FlowSettings, source: ClusterClient, target: ClusterClient, pass_over: PassOver
    ) -> None:
        self._settings = settings
        self._mode = settings.data_plane.provenance
        self._clusters = source, target
        self._rows = OriginRows(
            source, lambda: state_topics(source, settings.data_plane.upstream_state_topics), pass_over
        )
        self._copied: dict[int, bool] = {}

    def traces(self, topic: str) -> bool:
        """Return whether a topic's batches are traced: not if the target topic's name says where they came from."""
        return self._mode is not None and self._settings.hides_origin(topic)

    async def look_up(self, batches: Iterable[Batch]) -> None:
        """Look up the origins of the batches' producer ids. Raises KafkaProtocolError and BrokerUnreachable."""
        producers = batches_with_records(batches) - {-1}
        unknown = producers - self._copied.keys()
        if not unknown:
            return
        if len(self._copied) > KNOWN_AT_MOST:
            self._copied, unknown = {}, producers
        await self._rows.read()
        rule = self._rule()
        origins = origins_by_producer(self._rows.rows, rule.source)
        self._copied |= {producer_id: rule.copies(origins.get(producer_id, rule.source)) for producer_id in unknown}

    def copies(self, batch: Batch) -> bool:
        """Return whether the flow copies the batch. A batch without a producer id originated on the source."""
        return batch.producer_id == -1 or self._copied[batch.producer_id]

    def _rule(self) -> ProvenanceRule:
        for cluster in self._clusters:
            if not cluster.cluster_id:
                raise BrokerUnreachable("the cluster does not report its id", cluster.alias)
        source, target = self._clusters
        return ProvenanceRule(mode=self._mode or "local", source=source.cluster_id, target=target.cluster_id)
