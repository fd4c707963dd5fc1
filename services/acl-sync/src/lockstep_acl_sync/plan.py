"""Which ACLs a remote topic gets: who may read a source topic may read its remote topic (`mm2.md` §4.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from lockstep_acl_sync.bindings import AclBinding

__all__ = ["AclPlan", "AclRule", "LeftOut", "Reason", "judge", "plan"]


class Reason(Enum):
    """Why a source binding is not copied."""

    NOT_A_TOPIC = "not about a topic"
    NOT_LITERAL = "not a literal name"
    WRITE = "ALLOW WRITE is never copied: only the mirror writes to a remote topic"
    NOT_MIRRORED = "its topic is not mirrored"
    UNKNOWN = "an operation this release cannot name"


@dataclass(frozen=True, slots=True)
class AclRule:
    """What decides: which source topics are mirrored, and what they are called on the target."""

    replicates: Callable[[str], bool]
    remote_topic: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A source binding that is not copied, and why."""

    binding: AclBinding
    reason: Reason


@dataclass(frozen=True, slots=True)
class AclPlan:
    """What the target lacks. Bindings are only ever added: revoking is the operator's."""

    missing: tuple[AclBinding, ...]
    present: int
    left_out: tuple[LeftOut, ...]

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


def plan(source: Iterable[AclBinding], target: Iterable[AclBinding], rule: AclRule) -> AclPlan:
    """Hold the source's bindings against a fresh reading of the target's. Applying the plan and planning again finds
    nothing missing.
    """
    wanted: set[AclBinding] = set()
    left_out: list[LeftOut] = []
    for binding in source:
        match judge(binding, rule):
            case AclBinding() as copy:
                wanted.add(copy)
            case Reason() as reason:
                left_out.append(LeftOut(binding, reason))
    missing = wanted.difference(target)
    left_out.sort(key=lambda left: left.binding)
    return AclPlan(tuple(sorted(missing)), len(wanted) - len(missing), tuple(left_out))
