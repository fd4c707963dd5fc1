"""The fold of the checkpoints topic, which a new checkpoint has to exceed (`mm2-behaviour.md` §3.4 and §3.6).

The service replays the checkpoints topic before it emits anything, and follows it afterwards. So a restarted service,
or a replica that takes a group over, continues from the last checkpoint written. A checkpoint counts when it is
acknowledged, not when it is sent. A lost one is due again. MirrorMaker 2 forgets it (`mm2-behaviour.md` §8 row 6).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from lockstep_state.codecs.mm2_codec import Checkpoint, MalformedRecord, decode_checkpoint
from lockstep_state.offsets import TopicPartition

NOTHING: Mapping[TopicPartition, Checkpoint] = MappingProxyType({})


class WrittenCheckpoints:
    """The last checkpoint of each group and target partition, by offset in the checkpoints topic."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, Checkpoint]] = {}
        self._positions: dict[tuple[str, TopicPartition], int] = {}
        self.malformed = 0
        """Records that are no checkpoints. They are passed over, as MirrorMaker 2's readers do."""

    def fold(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Take in the record at `offset`. A record that was taken in already changes nothing.

        Raises:
            MalformedRecord: The record is no checkpoint. Only `malformed` changes.
            UnsupportedRecordVersion: The checkpoint has a later version, which may have another meaning.
        """
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            self.malformed += 1
            raise
        self.record(offset, checkpoint)

    def record(self, offset: int, checkpoint: Checkpoint) -> None:
        """Store a checkpoint at its offset. It may be acknowledged and then read back: the first of both counts."""
        tp = checkpoint.tp
        if offset <= self._positions.get((checkpoint.group, tp), -1):
            return
        self._positions[checkpoint.group, tp] = offset
        self._groups.setdefault(checkpoint.group, {})[tp] = checkpoint

    def record_all(self, offsets: Sequence[int], checkpoints: Iterable[Checkpoint]) -> None:
        for offset, checkpoint in zip(offsets, checkpoints, strict=True):
            self.record(offset, checkpoint)

    def for_group(self, group: str) -> Mapping[TopicPartition, Checkpoint]:
        """Return the last checkpoints of a group by target partition."""
        return self._groups.get(group, NOTHING)
