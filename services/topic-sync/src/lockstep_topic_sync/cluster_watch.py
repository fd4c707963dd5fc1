"""The readings of both clusters' capabilities, at the start of a term and at intervals."""

from datetime import timedelta

from lockstep_config.flow.client_settings import client_id
from lockstep_kafka.admin.admin import PROBE, Admin
from lockstep_kafka.session.broker_session import BrokerRequestFailed, SessionRefused
from lockstep_kafka.session.cluster_reader import read_cluster_versions
from lockstep_rules.clusters.cluster_capabilities import Role, known_versions, missing_capabilities
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.rows.state_rows import ClusterCapabilities

CAPABILITIES = "capabilities of clusters"

EVERY = timedelta(minutes=5)
"""The interval between two readings. A cluster is upgraded seldom."""


class ClusterWatch:
    """The owner of the `cluster/*` rows of one flow."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx

    async def run(self) -> None:
        """Read both clusters at intervals until cancelled."""
        await self._ctx.periodic.every(CAPABILITIES, EVERY, self._round)

    async def _round(self) -> None:
        """Read both clusters. One that does not answer keeps its row: other rounds report that."""
        ctx = self._ctx
        for admin, role in ((ctx.source, Role.SOURCE), (ctx.target, Role.TARGET)):
            try:
                await self._read(admin, role)
            except (SessionRefused, BrokerRequestFailed, OSError) as exc:
                ctx.log.debug("capabilities not read", f"{admin.alias}: {exc}", cluster=admin.alias)

    async def _read(self, admin: Admin, role: Role) -> None:
        ctx, clients = self._ctx, self._ctx.settings.clients
        properties = clients.source_admin if role is Role.SOURCE else clients.target_admin
        reading = await read_cluster_versions(
            properties, client_id(ctx.settings, "capabilities", properties), PROBE.total_seconds()
        )
        refused = admin.refused_requests
        missing = list(missing_capabilities(known_versions(reading.announced, refused), [role]))
        row = ClusterCapabilities(
            alias=admin.alias,
            cluster_id=reading.cluster_id,
            product=reading.kind,
            lacks=tuple(capability.name for capability in missing),
            refuses=tuple(
                capability.name
                for capability in missing
                if capability.request in refused and capability.is_supported(reading.announced)
            ),
        )
        if await ctx.state.write_if_changed(row):
            lacks = f", without {', '.join(row.lacks)}" if row.lacks else ""
            ctx.log.info("capabilities", f"{row.alias} looks like {row.product}{lacks}", cluster=row.alias)
