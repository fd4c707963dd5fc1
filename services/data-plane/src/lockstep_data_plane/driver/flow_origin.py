"""The origin row of a flow, which names its producer id and its source cluster, also while that cluster is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_trial import AppendMode
from lockstep_data_plane.driver.source_monitor import TROUBLE
from lockstep_data_plane.provenance.producer_ids import flow_origin, last_origin, settle_appends
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.topics.control_topics import service_topics
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_state.rows.state_rows import Origin

HEARD_WITHIN_S = 3.0
"""Seconds after which a silent source is taken for the cluster that it was.

Slots that start then drain, and find out where their copies end without it.
"""

ASKED_EVERY_S = 2.0


class FlowOrigin:
    """The origin of one flow in one run of its driver."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._origin: Origin | None = None
        self._confirming: asyncio.Task[Origin] | None = None
        self._chosen: tuple[FlowSettings, str, FlowSettings] | None = None
        """The settings of the file, the append mode, and the settings in that mode."""

    @property
    def producer_id(self) -> int:
        """Return the producer id with which the flow appends; -1: it has none yet."""
        return -1 if self._origin is None else self._origin.producer_id

    @property
    def source_cluster_id(self) -> str:
        """Return the id of the source's cluster; "": nothing was copied of it yet."""
        return "" if self._origin is None else self._origin.origin_cluster_id

    @property
    def reads_back(self) -> bool:
        """Return whether slots read the target's log back.

        Brokers do not refuse the append of a slot that is late to leave a partition then. So no partition may move to
        another slot.
        """
        return self.settings.data_plane.read_back

    @property
    def settings(self) -> FlowSettings:
        """Return the settings for slots: those of the file in the append mode that the target's trial chose.

        It is the same object as long as neither changes.
        """
        settings, appends = self._ctx.settings, "" if self._origin is None else self._origin.appends
        if self._chosen is None or self._chosen[0] is not settings or self._chosen[1] != appends:
            self._chosen = settings, appends, _in_mode(settings, appends)
        return self._chosen[2]

    async def take_last(self) -> None:
        """Take the origin from the rows. If they do not say how the flow appends, a trial of the target shows it.

        The source is not needed. Raises ClusterError for the target.
        """
        ctx = self._ctx
        origin = last_origin(ctx.state.rows.values(), ctx.flow, await ctx.target.cluster_id())
        self._origin = None if origin is None else await settle_appends(ctx, origin)

    @asynccontextmanager
    async def confirmed(self) -> AsyncIterator[None]:
        """Enter once the origin is known: from the source, or from the rows while the source does not answer.

        If the rows know no origin, it waits for the source. `check` is to be called meanwhile. Raises ClusterError.
        """
        self._origin = None  # the source may be another cluster than when this was asked last
        self._confirming = asyncio.create_task(self._confirm(), name=f"origin of {self._ctx.flow}")
        try:
            await asyncio.wait({self._confirming}, timeout=HEARD_WITHIN_S)
            if not self._confirming.done():
                await self.take_last()
            self._origin = self._origin or await self._confirming
            self.check()
            yield
        finally:
            await cancelled([self._confirming])

    def check(self) -> None:
        """Raise ClusterError if the source is another cluster than the one copied, or refuses what the flow needs."""
        if self._confirming is None or not self._confirming.done():
            return
        present, previous = self._confirming.result(), self._origin
        if previous is not None and present.producer_id != previous.producer_id:
            alias = self._ctx.flow.source
            text = f"its id is {present.origin_cluster_id}, and {previous.origin_cluster_id} was copied"
            raise ClusterError(alias, f"cluster {alias} is another one: {text}")
        self._origin = present

    async def _confirm(self) -> Origin:
        """Return the origin from the source, after its control topics were created. Raises ClusterError."""
        ctx, troubles = self._ctx, self._ctx.periodic.troubles
        while True:
            try:
                await create_topics(ctx, ctx.source)
                origin = await flow_origin(ctx)
            except ClusterUnreachable as trouble:
                if trouble.alias != ctx.flow.source:
                    raise
                troubles.record_failure(TROUBLE, trouble)
                await asyncio.sleep(ASKED_EVERY_S)
            else:
                troubles.record_success(TROUBLE)
                return origin


def _in_mode(settings: FlowSettings, appends: str) -> FlowSettings:
    """Return the settings in a mode of `Origin.appends`: the same object if the mode adds nothing."""
    plane = settings.data_plane
    if appends == AppendMode.TRANSACTIONS and not plane.exactly_once:
        return replace(settings, data_plane=replace(plane, exactly_once=True))
    if appends == AppendMode.READ_BACK and not plane.exactly_once:
        return replace(settings, data_plane=replace(plane, read_back=True))
    return settings


async def create_topics(ctx: FlowContext, cluster: Admin) -> None:
    """Create the data plane's control topics on this cluster, one after the other. Raises ClusterError."""
    for alias, topic in service_topics(ctx.settings, ctx.service):
        if alias == cluster.alias:
            await create_control_topics(ctx, cluster, [topic])
