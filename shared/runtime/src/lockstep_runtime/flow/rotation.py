"""Takes up passwords and certificates that change on disk, while the service goes on (decision 0030,
`rotate-credentials.md`).

The configuration is loaded again whenever a file it came from has changed. If our credentials to a cluster change by
that, and a broker accepts the new ones, the flow's clients are made anew. Nothing else of the new configuration counts
before the next start. A check that fails is repeated."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from lockstep_config import Configuration, ConfigurationError, FlowSettings
from lockstep_config.flow.client_settings import StoresUnusable, connections
from lockstep_config.flow.rotation import Identity, differing_keys, identities, replace_credentials
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import to_next_tick
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.file_digest import FileDigest, digests
from lockstep_state.names import Flow

CHECK_INTERVAL_S = 2.0
"""How often the files are checked; a change is used when it is the same at the next check."""

TRIED_FOR = timedelta(seconds=10)
"""How long a broker may take to say whether it accepts us: longer than otherwise, for no round waits for it."""

SAY_AFTER_S = 10.0
"""For so long files may not fit together before a word is said: they are replaced one after the other."""


Unusable = Callable[[str, FlowSettings, Side], Awaitable[str]]
"""(alias, settings, its side): why no connection can be made in one of the ways in which the settings do; "" when it
can in each."""


class Renewable(Protocol):
    """A flow that goes on as somebody else to its clusters."""

    @property
    def flow(self) -> Flow: ...

    async def renew(self, settings: FlowSettings) -> None:
        """Use these settings from now on: returns once that has begun, the flow's clients are made anew."""


@dataclass(slots=True)
class _Known:
    """One flow: its settings as they are in use, and who it is by them."""

    settings: FlowSettings
    identities: dict[Side, Identity] = field(repr=False)


class Rotation:
    """One process's look at the files of its configuration."""

    def __init__(
        self,
        configuration: Configuration,
        reload: Callable[[], Configuration],
        flows: Sequence[Renewable],
        settings: Mapping[Flow, FlowSettings],
        log: FlowLog,
        unusable: Unusable | None = None,
    ) -> None:
        """`settings` are those in use. `reload` loads the configuration as it is now; raises ConfigurationError.
        `unusable` tries connections; by default on the clusters."""
        self._started_with = configuration
        self._reload = reload
        self._flows = {one.flow: one for one in flows}
        self._log = log
        self._unusable = unusable or try_each
        self._files = configuration.sources.files
        seen = digests(self._files)
        self._steady = FileDigest(seen)
        self._known = {flow: _Known(one, identities(one, seen)) for flow, one in settings.items()}
        self._due = True
        """Check even if nothing has changed: it was loaded some moments before the files were checked first."""
        self._backoff = Backoff(first=CHECK_INTERVAL_S, limit=10.0)
        self._not_before = 0.0
        self._broken_since: float | None = None
        self._said = ""
        self._restart_for: tuple[str, ...] = ()
        self._renewed_ms = 0
        self._waits: dict[str, str] = {}

    def status(self) -> Mapping[str, Any]:
        """For /status: when credentials were renewed last (Unix milliseconds, 0: never), and why new ones were not.
        Also the keys that hold from the next start."""
        return {
            "credentials_renewed_ms": self._renewed_ms,
            "not_taken_up": sorted({*self._waits.values(), self._said} - {""}),
            "restart_needed_for": list(self._restart_for),
        }

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(to_next_tick(CHECK_INTERVAL_S))
            await self.check()

    async def check(self) -> None:
        """One look, and what follows from it."""
        seen = await asyncio.to_thread(digests, self._files)
        if not self._steady.differs(seen) and not (self._due and time.monotonic() >= self._not_before):
            return
        try:
            newer = await asyncio.to_thread(self._reload)
        except ConfigurationError as exc:
            self._report_unusable(exc)
            return
        files = newer.sources.files
        content = await asyncio.to_thread(digests, files)
        if any(content.get(file, one) != one for file, one in seen.items()):
            return  # changed while it was read: the next look
        self._is_usable()
        self._compare(newer)
        await self._apply(newer, content)
        self._files = files
        self._steady.accepted = content
        self._due = bool(self._waits)
        if self._due:
            self._not_before = time.monotonic() + self._backoff.next()
        else:
            self._backoff.reset()

    # -- what cannot be taken up ---------------------------------------------------------------------------------------

    def _report_unusable(self, exc: ConfigurationError) -> None:
        self._due = True
        now = time.monotonic()
        self._broken_since = self._broken_since or now
        mistakes = "; ".join(map(str, exc.problems))
        if now - self._broken_since >= SAY_AFTER_S and mistakes != self._said:
            self._said = mistakes
            self._log.warn("changed configuration not taken up", f"{mistakes}; going on with the former one")

    def _is_usable(self) -> None:
        if self._said:
            self._log.info("changed configuration can be read again")
        self._broken_since, self._said = None, ""

    def _compare(self, newer: Configuration) -> None:
        before, now = self._started_with.sources.entries, newer.sources.entries
        keys = differing_keys(before, now, {*self._started_with.clusters, *newer.clusters})
        if keys != self._restart_for and keys:
            self._log.warn(
                "restart needed", f"{', '.join(keys)} changed in {newer.path}: that counts from the next start"
            )
        self._restart_for = keys

    # -- what can ------------------------------------------------------------------------------------------------------

    async def _apply(self, newer: Configuration, content: Mapping[Path, str]) -> None:
        served = {settings.flow: settings for settings in newer.flows}
        tried: dict[tuple[str, Identity], str] = {}
        waits: dict[str, str] = {}
        for flow, known in self._known.items():
            if flow not in served:
                continue  # a flow that is gone ends with the next start
            wanted = replace_credentials(known.settings, served[flow], SIDES)
            now = identities(wanted, content)
            accepted: list[Side] = []
            for side in SIDES:
                if now[side] == known.identities[side]:
                    continue
                alias = flow.source if side == "source" else flow.target
                if why := await self._refused(alias, wanted, side, now[side], tried):
                    waits[alias] = why
                else:
                    accepted.append(side)
            if accepted:
                await self._renew(known, replace_credentials(known.settings, served[flow], accepted), accepted)
                known.identities |= {side: now[side] for side in accepted}
        for alias in waits.keys() - self._waits.keys():
            text = f"{waits[alias]}; going on with the former ones, and trying again"
            self._log.warn("credentials not taken up", f"cluster {alias}, the new ones: {text}", cluster=alias)
        self._waits = waits

    async def _renew(self, known: _Known, settings: FlowSettings, sides: Sequence[Side]) -> None:
        flow = settings.flow
        aliases = " and ".join(flow.source if side == "source" else flow.target for side in sides)
        self._log.info("credentials changed", f"{flow}: connecting anew to {aliases}")
        known.settings = settings
        self._renewed_ms = time.time_ns() // 1_000_000
        await self._flows[flow].renew(settings)

    async def _refused(
        self, alias: str, wanted: FlowSettings, side: Side, identity: Identity, tried: dict[tuple[str, Identity], str]
    ) -> str:
        """Why the new credentials cannot be used yet; "" when a broker takes them. Flows that are the same to a cluster
        share an answer."""
        if (alias, identity) not in tried:
            tried[alias, identity] = await self._unusable(alias, wanted, side)
        return tried[alias, identity]


async def try_each(alias: str, settings: FlowSettings, side: Side) -> str:
    """See `Unusable`."""
    try:
        for conf in await asyncio.to_thread(connections, settings, side):
            await Admin(alias, conf).probe(TRIED_FOR)
    except (ClusterError, StoresUnusable) as trouble:
        return str(trouble)
    return ""
