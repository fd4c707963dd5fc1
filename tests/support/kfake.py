"""kfake, the Kafka of franz-go's tests: a cluster of one broker in one process, with its data in a folder."""

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.broker_settings import LOCAL
from tests.support.eventually import wait_until
from tests.support.go_programs import build_program
from tests.support.ports import free_port
from tests.support.processes import kill, spawn, tail

STARTED_WITHIN = 60.0  # seconds; usual is 0.1


class Kfake:
    """What tests ask of a `Broker`: `start()`, `kill()`, `close()`, and where clients connect. A context manager."""

    def __init__(self, alias: str = "kfake") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"lockstep-{alias}-"))
        self.log = self.folder / "broker.log"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """Return where clients connect. The same after every restart."""
        return f"{LOCAL}:{self.port}"

    def start(self) -> Self:
        """Start it, or start it again with the same data and port, and return once clients are served."""
        program = build_program("kfake")
        self._process = spawn([program, str(self.port), str(self.folder / "data")], output=self.log)
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def served() -> bool:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError(f"kfake ended while it started:\n{tail(self.log)}")
            try:
                return bool(client.list_topics(timeout=1).brokers)
            except KafkaException:
                return False

        wait_until(served, within=STARTED_WITHIN, what="kfake answers")
        return self

    def kill(self) -> None:
        """End it as a power failure would (SIGKILL). Data and port are kept for the next start()."""
        if self._process is not None:
            kill(self._process)

    def close(self) -> None:
        """End it at once and remove its data. Idempotent."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)
