"""The console as a process of its own, as `lockstep console` starts it."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.services import ServiceProcess

TOKEN = "a-token-of-a-test"


class ConsoleProcess(ServiceProcess):
    """A console of a file. With a `token` it may be acted on by who has that; everybody may read. A context manager."""

    def __init__(self, file: Path, *flows: str, token: str = "", port: int = 0, arguments: Sequence[str] = ()) -> None:
        """`port`: the one it listens on; 0 takes a free one at each start."""
        guarded = ["--anonymous-read"] if token else []
        super().__init__(
            "lockstep_console",
            file,
            *flows,
            instance="console",
            arguments=["--port", str(port), *guarded, *arguments],
            environment={"LOCKSTEP_TOKEN": token},
        )

    def ready(self) -> bool:
        """Return whether every flow was read. While it reads thousands of partitions it may answer late."""
        try:
            return super().ready()
        except TimeoutError:
            return False
