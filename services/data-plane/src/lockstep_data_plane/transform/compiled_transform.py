"""A transform as the driver compiles it and the slots ask for it, and what is wrong with one that does not compile."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Self

from lockstep_data_plane.transform.python_function import FunctionVersion
from lockstep_state.codecs.transform_trial import TrialMistake
from lockstep_state.errors import NeedsDecision


@dataclass(frozen=True, slots=True)
class TransformVersion:
    """The version of a transform. Records that two slots make at one version are equal."""

    digest: str
    """The SHA-256 of the statement, its stages, the pinned settings, and the three below."""
    spark: str
    java: int
    """The major version of Java: the text of a double has changed from one to another."""
    jar: str

    @classmethod
    def of(cls, statement: str, stages_text: str, settings: str, *, spark: str, java: int, jar: str) -> Self:
        """Return the version of a statement with these stages. Equal parts give an equal version on any machine."""
        parts = [statement, stages_text, settings, spark, java, jar]
        return cls(hashlib.sha256(json.dumps(parts).encode()).hexdigest(), spark, java, jar)

    def __str__(self) -> str:
        return self.digest[:12]


@dataclass(frozen=True, slots=True)
class CompiledTransform:
    """A statement that slots can have evaluated. It has no secret in it, only the names of those that it needs."""

    statement: str
    stages: bytes = field(repr=False)
    columns_read: frozenset[str]
    columns_written: frozenset[str]
    """The columns that are made anew: key, value, headers, timestamp. The others stay the record's own."""
    secrets: tuple[str, ...]
    version: TransformVersion
    filters: bool = False
    """Some records may be filtered."""


class StatementRefused(NeedsDecision):
    """The error of a statement that cannot be a transform. `findings` has at least one."""

    def __init__(self, findings: tuple[TrialMistake, ...]) -> None:
        super().__init__("; ".join(map(str, findings)))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class PlannedTransform:
    """A transform of a flow, as the driver gives it to slots.

    Without `compiled` and `function` nothing is evaluated, and no topic of it is copied: `refused` says why.
    """

    name: str
    version: str = ""
    """The version of statement or function, options and secrets together (`version_with`)."""
    compiled: CompiledTransform | None = None
    function: FunctionVersion | None = None
    """The version of its function in Python; None: it has a statement."""
    refused: str = ""
