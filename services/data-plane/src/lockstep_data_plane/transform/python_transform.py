"""A Python function as a slot has it evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lockstep_data_plane.core.record_transform import TransformedRecords
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.transform.evaluation_answer import EvaluationCount, EvaluationOptions
from lockstep_data_plane.transform.python_evaluator import FUNCTION_SECONDS, PythonEvaluator, PythonFunction
from lockstep_state.offsets import TopicPartition


class PythonTransform:
    """The `RecordTransform` of one function in one slot. It has one process, which the first record starts."""

    def __init__(
        self, name: str, digest: str, version: str, options: EvaluationOptions, secrets: Mapping[str, str]
    ) -> None:
        """Start nothing yet.

        Args:
            name: `package.module:function`.
            digest: The version of its files, as the driver found it. A process with other files is refused.
            version: The version of the transform, with its options and secrets.
            options: How answers are wanted.
            secrets: The second argument of the function, if it has one.
        """
        self._version = version
        options = replace(options, seconds=FUNCTION_SECONDS)
        self._evaluator = PythonEvaluator(PythonFunction(name, secrets), options, digest)
        self.count = EvaluationCount()

    @property
    def version(self) -> str:
        """Return the version of the transform."""
        return self._version

    @property
    def evaluating_s(self) -> float:
        """Return the seconds for which the function's process has evaluated."""
        return self._evaluator.evaluating_s

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        """Return what becomes of the records of these batches from offset `start` on.

        Raises:
            TransformConnectionLost: The function's process has ended.
            TransformTimedOut: The function took too long.
            TransformVersionDiffers: The function's files are not those of the driver.
            TransformRefused: A batch is damaged, or the function cannot be used, or returned what it must not.
            CorruptRecordError: A batch of an old format cannot be read.
        """
        return await self.count.evaluate(self._evaluator, batches, start, tp)

    async def close(self) -> None:
        """End the function's process."""
        await self._evaluator.close()
