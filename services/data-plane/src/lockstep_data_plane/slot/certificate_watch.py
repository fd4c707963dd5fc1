"""Whether the certificates and keys that a slot connects with have been replaced on its own host.

The driver checks the files of its host, and starts its slots anew when these change. A slot on another host has files
of its own, which may be replaced sooner or later than the driver's (decision 0030)."""

import asyncio

from lockstep_config import FlowSettings
from lockstep_config.flow.rotation import named_by
from lockstep_config.resolve.precedence import SIDES
from lockstep_runtime.flow.rotation import try_each
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.file_digest import FileDigest, digests

CHECK_INTERVAL_S = 5.0
"""Less often than the driver does: where both see the same files, the slot is another one by then."""


class CertificateWatch:
    """Of one slot, from its beginning on."""

    def __init__(self, settings: FlowSettings, say: FlowLog) -> None:
        self._settings = settings
        self._say = say
        self._files = named_by(settings, "source") | named_by(settings, "target")
        self._steady = FileDigest(digests(self._files))
        self._said = ""
        self._renewed_at: float | None = None

    @property
    def renewed(self) -> bool:
        """Others are there, and brokers of both clusters take them."""
        return self._renewed_at is not None

    def renewed_for(self, seconds: float) -> bool:
        """Whether that has been so for longer than this."""
        return self._renewed_at is not None and asyncio.get_running_loop().time() - self._renewed_at > seconds

    async def watch(self, changed: asyncio.Event) -> None:
        """Look until they are renewed, and set `changed` then."""
        while self._files and not self.renewed:
            await asyncio.sleep(CHECK_INTERVAL_S)
            if not self._steady.differs(await asyncio.to_thread(digests, self._files)):
                continue
            if why := await self._unusable():
                if why != self._said:
                    self._said = why
                    self._say.warn("certificates not taken up", f"{why}; going on with the former ones")
                continue
            self._say.info("certificates changed", "connecting anew")
            self._renewed_at = asyncio.get_running_loop().time()
            changed.set()

    async def _unusable(self) -> str:
        for side in SIDES:
            flow = self._settings.flow
            alias = flow.source if side == "source" else flow.target
            if why := await try_each(alias, self._settings, side):
                return why
        return ""
