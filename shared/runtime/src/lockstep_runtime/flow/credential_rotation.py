"""Rotate the credentials of running flows: passwords and certificates that change on disk (decision 0030).

The configuration is loaded again whenever a file it came from has changed. If the credentials for a cluster have
changed, and a broker accepts the new ones, the flow's clients are made again. Nothing else of the new configuration
counts before the next start. A check that fails is repeated.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from lockstep_config import Configuration, ConfigurationError, FlowSettings
from lockstep_config.flow.changed_credentials import Identity, differing_keys, identities, replace_credentials
from lockstep_config.flow.client_settings import StoresUnusable, connections
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import to_next_tick
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.file_changes import FileChanges, digests
from lockstep_state.names import Flow

CHECK_INTERVAL_S = 2.0
"""Seconds between two checks of the files. A change is used when the next check finds the same."""

TRIED_FOR = timedelta(seconds=10)
"""Longest time for a broker's answer to new credentials: longer than otherwise, because no round waits for it."""

LOGGED_AFTER_S = 10.0
"""Seconds for which files may contradict each other before a line is logged: they are replaced one after the other."""


Unusable = Callable[[str, FlowSettings, Side], Awaitable[str]]
"""Gets a cluster's alias, the settings and the side. Returns why no connection can be made; "" if each one can be."""


class Renewable(Protocol):
    """A flow that can go on with other credentials."""

    @property
    def flow(self) -> Flow: ...

    async def renew(self, settings: FlowSettings) -> None:
        """Use these settings from now on. Return once the flow has begun to make its clients again."""


@dataclass(slots=True)
class _FlowCredentials:
    """The settings of one flow as they are in use, and its identities by them."""

    settings: FlowSettings
    identities: dict[Side, Identity] = field(repr=False)


class CredentialRotation:
    """Watch the configuration files of one process, and renew the flows whose credentials change."""

    def __init__(
        self,
        configuration: Configuration,
        reload: Callable[[], Configuration],
        flows: Sequence[Renewable],
        settings: Mapping[Flow, FlowSettings],
        log: FlowLog,
        unusable: Unusable | None = None,
    ) -> None:
        """Create the watch; call `run` to begin.

        Args:
            configuration: The configuration that the process has started with.
            reload: Loads the configuration as it is now; raises ConfigurationError.
            flows: The flows to renew.
            settings: The settings in use, by flow.
            log: Gets what is taken up and what is not.
            unusable: Tries connections; by default on the clusters.
        """
        self._started_with = configuration
        self._reload = reload
        self._flows = {flow.flow: flow for flow in flows}
        self._log = log
        self._unusable = unusable or try_each
        self._files = configuration.sources.files
        content = digests(self._files)
        self._steady = FileChanges(content)
        self._credentials = {flow: _FlowCredentials(used, identities(used, content)) for flow, used in settings.items()}
        self._retries = True
        """Check even if no file has changed: the configuration was loaded some moments before the first check."""
        self._backoff = Backoff(first=CHECK_INTERVAL_S, limit=10.0)
        self._not_before = 0.0
        self._broken_since: float | None = None
        self._logged_mistakes = ""
        self._restart_for: tuple[str, ...] = ()
        self._renewed_ms = 0
        self._refusals: dict[str, str] = {}

    def status(self) -> Mapping[str, Any]:
        """Return JSON values for `/status`: the last renewal in Unix milliseconds, and what was not taken up."""
        return {
            "credentials_renewed_ms": self._renewed_ms,
            "not_taken_up": sorted({*self._refusals.values(), self._logged_mistakes} - {""}),
            "restart_needed_for": list(self._restart_for),
        }

    async def run(self) -> None:
        """Check every two seconds, until cancelled."""
        while True:
            await asyncio.sleep(to_next_tick(CHECK_INTERVAL_S))
            await self.check()

    async def check(self) -> None:
        """Check the files once, and take up what has changed."""
        content = await asyncio.to_thread(digests, self._files)
        if not self._steady.differs(content) and not (self._retries and time.monotonic() >= self._not_before):
            return
        try:
            newer = await asyncio.to_thread(self._reload)
        except ConfigurationError as exc:
            self._report_unusable(exc)
            return
        files = newer.sources.files
        newer_content = await asyncio.to_thread(digests, files)
        if any(newer_content.get(file, digest) != digest for file, digest in content.items()):
            return  # changed while it was read: the next check finds out
        self._report_usable()
        self._compare(newer)
        await self._apply(newer, newer_content)
        self._files = files
        self._steady.accepted = newer_content
        self._retries = bool(self._refusals)
        if self._retries:
            self._not_before = time.monotonic() + self._backoff.next()
        else:
            self._backoff.reset()

    # -- what cannot be taken up ---------------------------------------------------------------------------------------

    def _report_unusable(self, exc: ConfigurationError) -> None:
        self._retries = True
        now = time.monotonic()
        self._broken_since = self._broken_since or now
        mistakes = "; ".join(map(str, exc.problems))
        if now - self._broken_since >= LOGGED_AFTER_S and mistakes != self._logged_mistakes:
            self._logged_mistakes = mistakes
            self._log.warn("changed configuration not taken up", f"{mistakes}; going on with the former one")

    def _report_usable(self) -> None:
        if self._logged_mistakes:
            self._log.info("changed configuration can be read again")
        self._broken_since, self._logged_mistakes = None, ""

    def _compare(self, newer: Configuration) -> None:
        before, now = self._started_with.sources.entries, newer.sources.entries
        keys = differing_keys(before, now, {*self._started_with.clusters, *newer.clusters})
        if keys != self._restart_for and keys:
            self._log.warn(
                "restart needed", f"{', '.join(keys)} changed in {newer.path}: that counts from the next start"
            )
        self._restart_for = keys

    # -- what is taken up ----------------------------------------------------------------------------------------------

    async def _apply(self, newer: Configuration, content: Mapping[Path, str]) -> None:
        served = {settings.flow: settings for settings in newer.flows}
        tried: dict[tuple[str, Identity], str] = {}
        refusals: dict[str, str] = {}
        for flow, credentials in self._credentials.items():
            if flow not in served:
                continue  # a flow that is gone ends with the next start
            newer_settings = replace_credentials(credentials.settings, served[flow], SIDES)
            now = identities(newer_settings, content)
            accepted: list[Side] = []
            for side in SIDES:
                if now[side] == credentials.identities[side]:
                    continue
                alias = flow.source if side == "source" else flow.target
                if refusal := await self._refused(alias, newer_settings, side, now[side], tried):
                    refusals[alias] = refusal
                else:
                    accepted.append(side)
            if accepted:
                await self._renew(
                    credentials, replace_credentials(credentials.settings, served[flow], accepted), accepted
                )
                credentials.identities |= {side: now[side] for side in accepted}
        for alias in refusals.keys() - self._refusals.keys():
            text = f"{refusals[alias]}; going on with the former ones, and trying again"
            self._log.warn("credentials not taken up", f"cluster {alias}, the new ones: {text}", cluster=alias)
        self._refusals = refusals

    async def _renew(self, credentials: _FlowCredentials, settings: FlowSettings, sides: Sequence[Side]) -> None:
        flow = settings.flow
        aliases = " and ".join(flow.source if side == "source" else flow.target for side in sides)
        self._log.info("credentials changed", f"{flow}: connecting anew to {aliases}")
        credentials.settings = settings
        self._renewed_ms = time.time_ns() // 1_000_000
        await self._flows[flow].renew(settings)

    async def _refused(
        self, alias: str, settings: FlowSettings, side: Side, identity: Identity, tried: dict[tuple[str, Identity], str]
    ) -> str:
        """Return why the new credentials cannot be used yet; "" when a broker takes them.

        Flows that are the same to a cluster share an answer.
        """
        if (alias, identity) not in tried:
            tried[alias, identity] = await self._unusable(alias, settings, side)
        return tried[alias, identity]


async def try_each(alias: str, settings: FlowSettings, side: Side) -> str:
    """Connect with each kind of client settings, as `Unusable` says."""
    try:
        for conf in await asyncio.to_thread(connections, settings, side):
            await Admin(alias, conf).probe(TRIED_FOR)
    except (ClusterError, StoresUnusable) as trouble:
        return str(trouble)
    return ""
