"""Which ACLs a remote topic gets: who may read a source topic may read its remote topic (`mm2-behaviour.md` §4.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from lockstep_protocol.acl_binding import AclBinding

NAMED = 20
"""Bindings left out that the state names; of more it has the number."""


class Reason(Enum):
    """Why a source binding is not copied, in the words of `acls.md`; those first that one would least expect."""

    UNKNOWN = "unknown-word"
    """Its operation, or another word, is one that this release cannot name."""
    TOO_WIDE = "too-wide"
    """Its prefix also matches topics, on either side, that are no part of the mirror; or it is about every group."""
    GROUP_OPERATION = "group-operation"
    """Of groups only reading is copied."""
    GROUP_NOT_MIRRORED = "group-not-mirrored"
    NOT_LITERAL = "not-literal"
    WRITE = "write"
    """ALLOW WRITE is never copied: only the mirror writes to a remote topic."""
    NOT_MIRRORED = "not-mirrored"
    NOT_A_TOPIC = "other-resource"


LEAST_EXPECTED = {reason: place for place, reason in enumerate(Reason)}


@dataclass(frozen=True, slots=True)
class AclRule:
    """What decides: which source topics are mirrored, and what they are called on the target."""

    replicates: Callable[[str], bool]
    remote_topic: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class LeftOutBinding:
    """A source binding that is not copied, and why."""

    binding: AclBinding
    reason: Reason


Verdict = Callable[[AclBinding], AclBinding | Reason]
"""A source binding as it belongs on the target, or why it does not."""


@dataclass(frozen=True, slots=True)
class AclPlan:
    """What belongs on the target, and what of it the target lacks."""

    wanted: Mapping[AclBinding, str]
    """With the name of what each was copied from on the source."""
    missing: tuple[AclBinding, ...]
    left_out: tuple[LeftOutBinding, ...]

    @property
    def present(self) -> int:
        return len(self.wanted) - len(self.missing)

    @property
    def counted(self) -> tuple[tuple[str, int], ...]:
        """How many were left out for each reason, in the order of `Reason`."""
        counts = Counter(left.reason for left in self.left_out)
        return tuple((reason.value, counts[reason]) for reason in Reason if counts[reason])

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """The first `NAMED` bindings left out, each with its reason."""
        return tuple((str(left.binding), left.reason.value) for left in self.left_out[:NAMED])

    @property
    def unknown(self) -> tuple[AclBinding, ...]:
        """Bindings on the source that could not be read in full; they are reported and never recreated."""
        return tuple(left.binding for left in self.left_out if left.reason is Reason.UNKNOWN)


def judge(binding: AclBinding, rule: AclRule) -> AclBinding | Reason:
    """The binding as it belongs on the target, or why it does not.

    ALLOW ALL becomes ALLOW READ, so that nobody but the mirror writes to a remote topic; DENY stays as it is.
    """
    if not binding.readable:
        return Reason.UNKNOWN
    if binding.resource != "TOPIC":
        return Reason.NOT_A_TOPIC
    if binding.pattern != "LITERAL":
        return Reason.NOT_LITERAL
    allow = binding.permission == "ALLOW"
    if allow and binding.operation == "WRITE":
        return Reason.WRITE
    if not rule.replicates(binding.name):
        return Reason.NOT_MIRRORED
    operation = "READ" if allow and binding.operation == "ALL" else binding.operation
    return replace(binding, name=rule.remote_topic(binding.name), operation=operation)


def plan(source: Iterable[AclBinding], target: Iterable[AclBinding], verdict: Verdict) -> AclPlan:
    """Hold the source's bindings against a fresh reading of the target's. Applying the plan and planning again finds
    nothing missing.
    """
    wanted: dict[AclBinding, str] = {}
    left_out: list[LeftOutBinding] = []
    for binding in sorted(source):
        match verdict(binding):
            case AclBinding() as copy:
                wanted[copy] = binding.name
            case Reason() as reason:
                left_out.append(LeftOutBinding(binding, reason))
    left_out.sort(key=lambda left: (LEAST_EXPECTED[left.reason], left.binding))
    return AclPlan(wanted, tuple(sorted(wanted.keys() - set(target))), tuple(left_out))
