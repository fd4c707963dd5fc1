"""The settings of a flow's transforms: what is done to the records of which topics. This module is pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lockstep_rules.filters import NameFilter
from lockstep_state.errors import NeedsDecision


class SeveralTransforms(NeedsDecision):
    """The error of a topic that more than one transform selects: nobody can say which of them is meant.

    `names` are the transforms, in the order of their names.
    """

    def __init__(self, topic: str, names: tuple[str, ...]) -> None:
        super().__init__(topic, names)
        self.topic = topic
        self.names = names

    def __str__(self) -> str:
        return (
            f"the transforms {' and '.join(self.names)} both select {self.topic}, and a topic has one at most: change "
            "lockstep.transform.NAME.topics"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSettings:
    """One transform. Either `sql` or `python` is not empty.

    `topics` selects topics of the source by name. `sql` is one SELECT, also if the file has the short form `.mask`, and
    `python` is `package.module:function`. `secrets` has the values of the secrets by name, and `threads` is the number
    of connections of a slot to its JVM. The values of the others are the choices of `transform_keys`.

    `statement_location` is its own file, or `FILE:LINE: KEY`. It does not count when settings are compared.
    """

    name: str
    topics: NameFilter
    sql: str = ""
    python: str = ""
    tombstones: Literal["pass", "filter"] = "pass"
    filtered: Literal["drop", "tombstone"] = "drop"
    on_error: Literal["halt", "quarantine", "quarantine-metadata"] = "halt"
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    threads: int = 2
    statement_location: str = field(default="", compare=False)


def find_transform(transforms: Iterable[TransformSettings], topic: str) -> TransformSettings | None:
    """Return the transform of a topic of the source; None: its records are copied as they are.

    Raises:
        SeveralTransforms: More than one selects the topic.
    """
    matching = tuple(transform for transform in transforms if transform.topics.matches(topic))
    if len(matching) > 1:
        raise SeveralTransforms(topic, tuple(sorted(transform.name for transform in matching)))
    return matching[0] if matching else None
