"""The fold of checkpoints into offsets of groups on the target (`mm2-behaviour.md` §3.8). No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_state.codecs.mm2_codec import Checkpoint, MalformedRecord, decode_checkpoint

Groups = str | re.Pattern[str]
"""A group by its exact id, or every group whose whole id matches."""


@dataclass(frozen=True, slots=True)
class RemoteOffsets:
    """The offsets of groups on the target.

    `checkpoints` has the last one of each group and target partition, in the order in which they were written.
    `malformed` counts the records that were ignored because they are no checkpoints.
    """

    checkpoints: tuple[Checkpoint, ...] = ()
    malformed: int = 0

    @property
    def groups(self) -> frozenset[str]:
        """Every group that has a checkpoint."""
        return frozenset(checkpoint.group for checkpoint in self.checkpoints)

    def for_group(self, group: str) -> Mapping[tuple[str, int], Checkpoint]:
        """Return the group's checkpoints by target topic and partition; empty for a group without.

        >>> RemoteOffsets().for_group("billing")
        {}
        """
        return {checkpoint.tp: checkpoint for checkpoint in self.checkpoints if checkpoint.group == group}


class CheckpointFold:
    """The fold of a checkpoints topic. Its records have to come in their order."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._latest: dict[tuple[str, str, int], Checkpoint] = {}
        self._malformed = 0

    def apply_record(self, key: bytes | None, value: bytes | None) -> None:
        """Fold the next record. Raises `UnsupportedRecordVersion`, for any group's checkpoint."""
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            self._malformed += 1
            return
        if self._is_asked_for(checkpoint.group):
            identity = checkpoint.group, checkpoint.topic, checkpoint.partition
            self._latest.pop(identity, None)  # so that it is last in the dict
            self._latest[identity] = checkpoint

    def result(self) -> RemoteOffsets:
        """Return the offsets by the records so far."""
        return RemoteOffsets(tuple(self._latest.values()), self._malformed)

    def _is_asked_for(self, group: str) -> bool:
        if isinstance(self._groups, str):
            return group == self._groups
        return self._groups.fullmatch(group) is not None
