"""Replicas of a control service, as tests start, freeze and kill them."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from lockstep_state.names import COMMANDS_PARTITIONS
from tests.faults.subjects import Subject, until
from tests.support.processes import show
from tests.support.services import ServiceProcess


class Replicas:
    """So many processes of the subject's service; a context manager."""

    def __init__(
        self, subject: Subject, folder: Path, number: int, *, name: str = "replica", proxied: bool = False
    ) -> None:
        self.subject = subject
        self.divided = subject.service == "checkpoint"
        file = subject.file(folder, proxied=proxied)
        self.each = [
            ServiceProcess(subject.module, file, str(subject.flow), instance=f"{name}-{place}")
            for place in range(number)
        ]

    def __enter__(self) -> "Replicas":
        for one in self.each:
            one.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            show(*(one.log for one in self.each))
        for one in self.each:
            one.kill()

    def settled(self) -> ServiceProcess:
        """The acting replica, once each of those that run has its share: an arrival may move partition 0. Where
        replicas divide the work all of them do, and it is any of them."""

        def one() -> ServiceProcess | None:
            running = [replica for replica in self.each if replica.running]
            shares = {replica: self._said(replica, "partitions") for replica in running}
            acting = [replica for replica in running if self._said(replica, "acting")]
            shared = all(shares.values()) and sum(map(len, shares.values())) == COMMANDS_PARTITIONS
            return acting[-1] if shared and len(acting) == (len(running) if self.divided else 1) else None

        return until(one, what=f"{self.subject.service} is shared out and led")

    def kill_and_wait(self, victim: ServiceProcess) -> float:
        """kill -9; the seconds until the others act in its stead."""
        terms = max(self.subject.leaders())
        began = time.monotonic()
        victim.kill()
        until(self._led, every=0.05, what=f"another {self.subject.service} acts")
        took = time.monotonic() - began
        assert max(self.subject.leaders()) > terms
        return took

    def _led(self) -> bool:
        running = [replica for replica in self.each if replica.running]
        held = sum(len(self._said(replica, "partitions")) for replica in running)
        acting = sum(bool(self._said(replica, "acting")) for replica in running)
        return held == COMMANDS_PARTITIONS and acting == (len(running) if self.divided else 1)

    def _said(self, replica: ServiceProcess, what: str) -> Any:
        return replica.status(str(self.subject.flow))[what]
