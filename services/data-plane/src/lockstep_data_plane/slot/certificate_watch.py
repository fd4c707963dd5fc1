"""A check for replaced certificates and keys on a slot's own host.

The driver checks the files of its host, and restarts its slots when these change. A slot on another host has files
of its own. They may be replaced sooner or later than the driver's (decision 0030).
"""

import asyncio

from lockstep_config import FlowSettings
from lockstep_config.flow.changed_credentials import named_by
from lockstep_config.resolve.precedence import SIDES
from lockstep_runtime.flow.credential_rotation import try_each
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.file_changes import FileChanges, digests

CHECK_INTERVAL_S = 5.0
"""Seconds between two checks. The driver checks more often. If both see the same files, the driver has restarted the
slot by then.
"""


class CertificateWatch:
    """The check of one slot's certificate files, from the slot's start on."""

    def __init__(self, settings: FlowSettings, log: FlowLog) -> None:
        self._settings = settings
        self._log = log
        self._files = named_by(settings, "source") | named_by(settings, "target")
        self._steady = FileChanges(digests(self._files))
        self._reported = ""
        self._renewed_at: float | None = None

    @property
    def renewed(self) -> bool:
        """Return whether the files were replaced and brokers of both clusters accept the new ones."""
        return self._renewed_at is not None

    def renewed_for(self, seconds: float) -> bool:
        """Return whether the new certificates have been found usable for longer than `seconds`."""
        return self._renewed_at is not None and asyncio.get_running_loop().time() - self._renewed_at > seconds

    async def watch(self, changed: asyncio.Event) -> None:
        """Check the files until new, usable certificates are there, then set `changed`.

        Returns at once if the flow names no files. Certificates that a cluster does not accept are logged once, and the
        slot goes on with the former ones.
        """
        while self._files and not self.renewed:
            await asyncio.sleep(CHECK_INTERVAL_S)
            if not self._steady.differs(await asyncio.to_thread(digests, self._files)):
                continue
            if reason := await self._unusable():
                if reason != self._reported:
                    self._reported = reason
                    self._log.warn("certificates not taken up", f"{reason}; going on with the former ones")
                continue
            self._log.info("certificates changed", "connecting anew")
            self._renewed_at = asyncio.get_running_loop().time()
            changed.set()

    async def _unusable(self) -> str:
        for side in SIDES:
            flow = self._settings.flow
            alias = flow.source if side == "source" else flow.target
            if refusal := await try_each(alias, self._settings, side):
                return refusal
        return ""
