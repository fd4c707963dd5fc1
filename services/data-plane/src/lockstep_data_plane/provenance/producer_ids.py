"""The flow's producer id: got once, kept in the state topic, used by every slot for ever (`kafka-wire.md` §0, §4)."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_data_plane.core.append_trial import AppendFault, AppendMode, choose_mode
from lockstep_data_plane.provenance.target_trial import TargetTrial
from lockstep_kafka.common.errors import (
    AppendsUnsafe,
    ClusterUnreachable,
    ProtocolUnfit,
    RequestRefused,
    RequestUnsupported,
)
from lockstep_kafka.wire.cluster import KafkaProtocolError, connect_cluster
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError
from lockstep_kafka.wire.optional_requests import new_producer
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Origin, PartitionProgress, Row

CHOSEN_IDS = 2**52
"""The first number for producer ids that Lockstep chooses. They end where readers of JSON lose exactness."""

MODE_TEXTS = {
    AppendMode.TRANSACTIONS: "copies in transactions: markers take offsets on the target",
    AppendMode.READ_BACK: (
        "reads the target's log back, for it has no transactions either. One batch of a partition is in flight. The "
        "copy is exact, but a writer that was frozen may double a batch, and that is reported (RecordsDoubled)"
    ),
}
"""Sentences about the append modes that differ from the usual one, with their costs."""


def find_origin(rows: Iterable[Row], flow: Flow, origin_cluster_id: str, target_cluster_id: str) -> Origin | None:
    """Return the first row, in log order, of this flow and origin between the clusters as they are now.

    A row about another cluster under the same alias does not count: producer ids are unique within one cluster's life
    only.
    """
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
    """Return the origin that the flow has copied last, for a source that does not answer; None: nothing was copied.

    It is the one whose producer id the newest row of a partition has, else the last one that a driver wrote. Slots
    write other origins, without a term.
    """
    rows = list(rows)
    own_rows = [
        row
        for row in rows
        if isinstance(row, Origin)
        and (row.source, row.target, row.target_cluster_id) == (flow.source, flow.target, target_cluster_id)
    ]
    newest = max((row for row in rows if isinstance(row, PartitionProgress)), key=lambda row: row.at_ms, default=None)
    used = [row for row in own_rows if row.term and newest is not None and row.producer_id == newest.producer_id]
    return next(iter(used or sorted(own_rows, key=lambda row: (bool(row.term), row.at_ms), reverse=True)), None)


def origin_row(
    producer_id: int, flow: Flow, origin_cluster_id: str, target_cluster_id: str, appends: str = ""
) -> Origin:
    """Return the row by which `producer_id` stands for an origin in this flow. `appends` is as in `Origin.appends`."""
    return Origin(
        producer_id=producer_id,
        source=flow.source,
        target=flow.target,
        origin_cluster_id=origin_cluster_id,
        target_cluster_id=target_cluster_id,
        appends=appends,
    )


async def new_producer_id(settings: FlowSettings) -> int:
    """Return a producer id that the target has never given.

    Raises BrokerUnreachable, and KafkaProtocolError, with UNSUPPORTED_VERSION if the target gives none.
    """
    properties = settings.clients.data_producer
    target = connect_cluster(settings.flow.target, properties, client_id(settings, "producer-id", properties))
    try:
        await target.refresh([])
        producer = await new_producer(target)
    finally:
        await target.close()
    if producer is None:
        text = f"cluster {target.alias} gives no producer ids (InitProducerId)"
        raise KafkaProtocolError(int(KafkaErrorCode.UNSUPPORTED_VERSION), text, target.alias)
    return producer[0]


def chosen_producer_id(origin_cluster_id: str, target_cluster_id: str) -> int:
    """Return the number that stands for an origin if the target's log is read back, so that no batch has it.

    Two drivers choose the same number. No cluster gives it: brokers count from 0.
    """
    return CHOSEN_IDS + zlib.crc32(f"{origin_cluster_id}/{target_cluster_id}".encode())


async def flow_origin(ctx: FlowContext) -> Origin:
    """Return the flow's origin row, written and read back if there was none yet.

    Of two rows that were written at the same time the first counts. Before one is written, the target is tried. Raises
    ClusterError, and AppendsUnsafe if no way of appending is exact.
    """
    ids = await ctx.source.cluster_id(), await ctx.target.cluster_id()
    while (origin := find_origin(ctx.state.rows.values(), ctx.flow, *ids)) is None:
        before = ctx.state.position
        with _as_cluster_errors(ctx):
            appends = await _choose_appends(ctx)
            is_chosen = appends == AppendMode.READ_BACK
            producer_id = chosen_producer_id(*ids) if is_chosen else await new_producer_id(ctx.settings)
        await ctx.state.write(origin_row(producer_id, ctx.flow, *ids, appends))
        await ctx.state.changed(before)
    return await settle_appends(ctx, origin)


async def settle_appends(ctx: FlowContext, origin: Origin) -> Origin:
    """Return the row with how the flow appends: as the row says, else as a trial of the target shows now.

    A row that was written while the file asked for transactions says nothing about it. Raises ClusterError, and
    AppendsUnsafe if the file has changed since, so that topics keep their names.
    """
    if not origin.appends:
        with _as_cluster_errors(ctx):
            return replace(origin, appends=await _choose_appends(ctx))
    settings = ctx.settings
    if origin.appends == AppendMode.READ_BACK and settings.keeps_names and not settings.data_plane.exactly_once:
        raise AppendsUnsafe(ctx.flow.target, AppendFault.IDS_LOST.words)
    return origin


async def _choose_appends(ctx: FlowContext) -> str:
    """Return how the flow appends to its target, as in `Origin.appends`, and report a way other than the file's.

    Raises AppendsUnsafe, BrokerUnreachable and KafkaProtocolError.
    """
    if ctx.settings.data_plane.exactly_once:
        return ""
    mode, faults = await try_target(ctx.settings)
    alias, words = ctx.flow.target, "; it ".join(fault.words for fault in faults)
    if mode is None:
        raise AppendsUnsafe(alias, words)
    if mode is not AppendMode.SEQUENCES:
        await ctx.event(
            "AppendModeChosen",
            f"cluster {alias}",
            f"cluster {alias} {words}. So {ctx.flow} {MODE_TEXTS[mode]}",
            mode=mode.value,
            faults=[fault.value for fault in faults],
        )
    return mode.value


async def try_target(settings: FlowSettings) -> tuple[AppendMode | None, tuple[AppendFault, ...]]:
    """Return how a flow without transactions in its file appends, and the target's faults; None: no way is exact.

    Raises BrokerUnreachable and KafkaProtocolError.
    """
    trial = TargetTrial(settings)
    try:
        faults = await trial.find_faults()
        asks = bool(faults) and AppendFault.IDS_ABSENT not in faults  # a transaction begins with InitProducerId
        transactions = asks and await trial.has_transactions()
        return choose_mode(faults, transactions=transactions, keeps_names=settings.keeps_names), faults
    finally:
        await trial.close()


@contextmanager
def _as_cluster_errors(ctx: FlowContext) -> Iterator[None]:
    """Raise the errors of the data plane's own connections as ClusterError."""
    alias = ctx.flow.target
    try:
        yield
    except ProtocolUnfitError as exc:
        raise ProtocolUnfit(exc.alias, exc.reason) from exc
    except BrokerUnreachable as exc:
        raise ClusterUnreachable(alias, ctx.settings.target.bootstrap, str(exc)) from exc
    except KafkaProtocolError as exc:
        if exc.code == KafkaErrorCode.UNSUPPORTED_VERSION:
            raise RequestUnsupported(alias, "give", "a producer id (InitProducerId)", exc.code, str(exc)) from exc
        raise RequestRefused(alias, "take", "batches with a producer id", exc.code, str(exc)) from exc
