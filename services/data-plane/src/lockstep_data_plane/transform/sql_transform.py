"""A SELECT as a slot has it evaluated: connections to the executor's JVM, which are made anew when they are lost."""

import asyncio
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lockstep_data_plane.core.record_transform import TransformedRecords
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.transform.compiled_transform import CompiledTransform
from lockstep_data_plane.transform.evaluation_answer import (
    EvaluationCount,
    EvaluationOptions,
    TransformConnectionLost,
    TransformTimedOut,
)
from lockstep_data_plane.transform.evaluator import TransformEvaluator
from lockstep_data_plane.transform.jvm_socket import find_server
from lockstep_state.offsets import TopicPartition

CONNECTS_WITHIN_S = 30.0
"""Seconds for a connection to the JVM, which generates the code of the stages meanwhile."""

SECRET_ROUNDS = 100_000
"""The rounds of PBKDF2 between a secret and its part of a version, which is in rows that others may read."""


def version_of(compiled: CompiledTransform, options: EvaluationOptions, secrets: Mapping[str, bytes]) -> str:
    """Return the version of a transform with its options and secrets: other ones make other records."""
    named = {name: secrets.get(name, b"") for name in compiled.secrets}
    return version_with(compiled.version.digest, options, named)


def version_with(digest: str, options: EvaluationOptions, secrets: Mapping[str, bytes]) -> str:
    """Return the version of what has this digest, with its options and secrets."""
    parts = [digest, options.tombstones.value, options.filtered.value]
    for name, secret in sorted(secrets.items()):
        salt = f"lockstep transform {name}".encode()
        parts.append(hashlib.pbkdf2_hmac("sha256", secret, salt, SECRET_ROUNDS).hex())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Connection:
    """One connection to the JVM, made when it is needed, and made anew after it was lost."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.evaluator: TransformEvaluator | None = None
        self.evaluated_s = 0.0
        """Seconds of evaluation over the connections before the present one."""


class SqlTransform:
    """The `RecordTransform` of one SELECT in one slot."""

    def __init__(
        self,
        compiled: CompiledTransform,
        version: str,
        options: EvaluationOptions,
        secrets: Mapping[str, bytes],
        *,
        connections: int = 1,
        find: Callable[[], tuple[int, Path]] = find_server,
    ) -> None:
        """Connect to nothing yet.

        Args:
            compiled: The statement, as the driver has compiled it.
            version: Its version, as `version_of` gives it.
            options: How answers are wanted.
            secrets: The secrets that the statement names.
            connections: The number of connections. Each has a thread in the JVM; a partition keeps to one of them.
            find: Returns the pid and the socket of the JVM.
        """
        self._compiled = compiled
        self._version = version
        self._options = options
        self._secrets = secrets
        self._find = find
        self._connections = [_Connection() for _ in range(connections)]
        self.count = EvaluationCount()

    @property
    def version(self) -> str:
        """Return the version of the transform."""
        return self._version

    @property
    def evaluating_s(self) -> float:
        """Return the seconds for which the JVM has evaluated, over all connections together."""
        return sum(
            connection.evaluated_s + (connection.evaluator.evaluating_s if connection.evaluator is not None else 0.0)
            for connection in self._connections
        )

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        """Return what becomes of the records of these batches from offset `start` on.

        Raises:
            NoTransformServer: No JVM above this process evaluates transforms.
            TransformConnectionLost: The JVM, or the connection to it, has ended.
            TransformTimedOut: The JVM took too long.
            TransformVersionDiffers: The JVM has another Spark, Java or jar than the driver.
            TransformRefused: A batch is damaged, or the JVM cannot evaluate the transform.
            CorruptRecordError: A batch of an old format cannot be read.
        """
        return await self.count.evaluate(await self._evaluator(tp), batches, start, tp)

    async def _evaluator(self, tp: TopicPartition) -> TransformEvaluator:
        number = zlib.crc32(f"{tp[0]}-{tp[1]}".encode()) % len(self._connections)
        connection = self._connections[number]
        async with connection.lock:
            if connection.evaluator is not None and connection.evaluator.is_lost:
                connection.evaluated_s += connection.evaluator.evaluating_s
                await connection.evaluator.close()
                connection.evaluator = None
            if connection.evaluator is None:
                server = await asyncio.to_thread(self._find)
                try:
                    connection.evaluator = await TransformEvaluator.connect(
                        server,
                        self._compiled,
                        options=self._options,
                        secrets=self._secrets,
                        within=CONNECTS_WITHIN_S,
                    )
                except TransformTimedOut as exc:  # a JVM that stands still, and no evaluation that never ends
                    raise TransformConnectionLost(str(exc)) from exc
            return connection.evaluator

    async def close(self) -> None:
        """End the connections, and their threads in the JVM with them."""
        for connection in self._connections:
            if connection.evaluator is not None:
                await connection.evaluator.close()
