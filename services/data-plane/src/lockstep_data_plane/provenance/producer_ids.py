"""The flow's producer id: got once, kept in state, used by every slot for ever (`kafka-wire.md` §0, §4)."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_data_plane.wire.cluster import KafkaProtocolError, connect_cluster
from lockstep_data_plane.wire.connection import BrokerUnreachable, ProtocolUnfitError
from lockstep_data_plane.wire.kio_messages import message
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import Origin, PartitionProgress, Row
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.util.errors import ClusterUnreachable, ProtocolUnfit


def find_origin(rows: Iterable[Row], flow: Flow, origin_cluster_id: str, target_cluster_id: str) -> Origin | None:
    """The first row, in log order, that speaks of this flow, this origin and the clusters as they are now. A row about
    another cluster under the same alias does not count: producer ids are unique within one cluster's life only."""
    for row in rows:
        if (
            isinstance(row, Origin)
            and (row.source, row.target) == (flow.source, flow.target)
            and row.origin_cluster_id == origin_cluster_id
            and row.target_cluster_id == target_cluster_id
        ):
            return row
    return None


def last_origin(rows: Iterable[Row], flow: Flow, target_cluster_id: str) -> Origin | None:
    """Return the origin of which the flow has copied last, for a source that cannot say which cluster it is. That is
    the one whose producer id the newest row of a partition has, else the last one that a driver wrote down. Slots
    write down other origins, without a term. None: nothing was ever copied to this target."""
    rows = list(rows)
    ours = [
        row
        for row in rows
        if isinstance(row, Origin)
        and (row.source, row.target, row.target_cluster_id) == (flow.source, flow.target, target_cluster_id)
    ]
    newest = max((row for row in rows if isinstance(row, PartitionProgress)), key=lambda row: row.at_ms, default=None)
    used = [row for row in ours if row.term and newest is not None and row.producer_id == newest.producer_id]
    return next(iter(used or sorted(ours, key=lambda row: (bool(row.term), row.at_ms), reverse=True)), None)


def origin_row(producer_id: int, flow: Flow, origin_cluster_id: str, target_cluster_id: str) -> Origin:
    """The row by which `producer_id` stands for an origin in this flow."""
    return Origin(
        producer_id=producer_id,
        source=flow.source,
        target=flow.target,
        origin_cluster_id=origin_cluster_id,
        target_cluster_id=target_cluster_id,
    )


async def new_producer_id(settings: FlowSettings) -> int:
    """A producer id that the target has never given to anybody. Raises BrokerUnreachable, KafkaProtocolError."""
    properties = settings.clients.data_producer
    target = connect_cluster(settings.flow.target, properties, client_id(settings, "producer-id", properties))
    try:
        await target.refresh([])
        connection = await target.any_connection()
        m = message("init_producer_id", connection.version("init_producer_id"), "request")
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta(0))
        answer: Any = await connection.call(request)
        if answer.error_code != KafkaErrorCode.NONE:
            raise KafkaProtocolError(int(answer.error_code), f"cluster {settings.flow.target}: a producer id")
        return int(answer.producer_id)
    finally:
        await target.close()


async def flow_origin(ctx: FlowContext) -> Origin:
    """The flow's row, written and read back if there is none yet; of two that were written at once the first counts.
    Raises ClusterError."""
    ids = await ctx.source.cluster_id(), await ctx.target.cluster_id()
    while (found := find_origin(ctx.state.rows.values(), ctx.flow, *ids)) is None:
        before = ctx.state.position
        try:
            producer_id = await new_producer_id(ctx.settings)
        except ProtocolUnfitError as exc:
            raise ProtocolUnfit(exc.alias, exc.reason) from exc
        except (BrokerUnreachable, KafkaProtocolError) as exc:
            raise ClusterUnreachable(ctx.flow.target, ctx.settings.target.bootstrap, str(exc)) from exc
        await ctx.state.write(origin_row(producer_id, ctx.flow, *ids))
        await ctx.state.changed(before)
    return found
