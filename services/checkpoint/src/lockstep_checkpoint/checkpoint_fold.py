"""The checkpoints the target has acknowledged: what a new one has to be more recent than (`mm2-behaviour.md` §3.4 and
§3.6).

The checkpoints topic is the memory. The service replays it before it emits anything, and follows it afterwards. So a
restarted service, or another replica that takes a group over, continues from the last checkpoint written. A checkpoint
of our own counts when it is acknowledged, not when it is sent. A lost one is due again (MirrorMaker 2 forgets it,
`mm2-behaviour.md` §8 row 6).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from lockstep_state.codecs.mm2_codec import Checkpoint, MalformedRecord, decode_checkpoint
from lockstep_state.offsets import TopicPartition

NOTHING: Mapping[TopicPartition, Checkpoint] = MappingProxyType({})


class WrittenCheckpoints:
    """The fold of the checkpoints topic: the last checkpoint of each group and target partition, by position in the
    log.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, Checkpoint]] = {}
        self._positions: dict[tuple[str, TopicPartition], int] = {}
        self.malformed = 0
        """Records that are no checkpoints; they are passed over, as MirrorMaker 2's readers do."""

    def fold(self, at: int, key: bytes | None, value: bytes | None) -> None:
        """Take in the record at offset `at`; one that is known already changes nothing.

        Raises MalformedRecord for a record that is no checkpoint, and changes nothing but the count of them. Raises
        UnsupportedRecordVersion for a checkpoint of a later version: what it means is not known here.
        """
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            self.malformed += 1
            raise
        self.written(at, checkpoint)

    def written(self, at: int, checkpoint: Checkpoint) -> None:
        """`checkpoint` is at offset `at`, acknowledged or read back; the first of the two counts."""
        where = (checkpoint.topic, checkpoint.partition)
        if at <= self._positions.get((checkpoint.group, where), -1):
            return
        self._positions[checkpoint.group, where] = at
        self._groups.setdefault(checkpoint.group, {})[where] = checkpoint

    def all_written(self, offsets: Sequence[int], checkpoints: Iterable[Checkpoint]) -> None:
        """`written` for each, in the order in which they were appended."""
        for at, checkpoint in zip(offsets, checkpoints, strict=True):
            self.written(at, checkpoint)

    def for_group(self, group: str) -> Mapping[TopicPartition, Checkpoint]:
        """The last checkpoints of a group by target partition; empty for a group without."""
        return self._groups.get(group, NOTHING)
