"""What is copied beyond MirrorMaker 2's rule where the file asks for it: prefixes, and who may read a group. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from lockstep_acl_sync.plan import AclRule, Reason, judge
from lockstep_protocol.acl_binding import AclBinding

EVERYTHING = "*"
"""As a literal name of a group: all groups there are."""

OF_GROUPS = {
    "ALLOW": {"READ": "READ", "DESCRIBE": "DESCRIBE", "ALL": "READ"},
    "DENY": {"READ": "READ", "DESCRIBE": "DESCRIBE", "ALL": "ALL"},
}
"""By permission, the operations about groups that are copied, and as what: as MirrorMaker 2 has it for topics."""


@dataclass(frozen=True, slots=True)
class TopicsThere:
    """What a prefix could match on either side."""

    source: Sequence[str]
    """Every topic of the source, sorted."""
    target: Sequence[str]
    """Every topic of the target, sorted."""
    remote: Mapping[str, str]
    """Those of the source that are mirrored, with their names on the target."""
    copies: frozenset[str]
    """Topics of the target that are copies, also of topics that the source has no more."""

    @classmethod
    def seen(cls, source: Iterable[str], target: Iterable[str], copies: Iterable[str], rule: AclRule) -> TopicsThere:
        """From the names on both sides, and those of the copies as topic-sync has them."""
        names = sorted(source)
        remote = {name: rule.remote_topic(name) for name in names if rule.replicates(name)}
        return cls(names, sorted(target), remote, frozenset(copies) | frozenset(remote.values()))

    def fits(self, prefix: str, remote_prefix: str) -> bool:
        """Whether `remote_prefix` covers on the target what `prefix` covers on the source. Every topic with the prefix
        is mirrored to a name with the remote one. Every topic of the target with the remote one is a copy."""
        mirrored = (self.remote.get(topic, "").startswith(remote_prefix) for topic in _with(prefix, self.source))
        return all(mirrored) and all(topic in self.copies for topic in _with(remote_prefix, self.target))


def _with(prefix: str, names: Sequence[str]) -> Iterator[str]:
    first = bisect_left(names, prefix)
    return takewhile(lambda name: name.startswith(prefix), (names[at] for at in range(first, len(names))))


@dataclass(frozen=True, slots=True)
class OptIns:
    """What was asked for: `prefixes`, with what they are judged by; `groups`, with which of them are followed."""

    prefixes: TopicsThere | None = None
    groups: Callable[[str], bool] | None = None


def judge_with(binding: AclBinding, rule: AclRule, opt_ins: OptIns) -> AclBinding | Reason:
    """MirrorMaker 2's verdict, but for what was asked for beyond it."""
    if binding.resource == "TOPIC" and binding.pattern == "PREFIXED" and opt_ins.prefixes is not None:
        return _prefixed(binding, rule, opt_ins.prefixes)
    if binding.resource == "GROUP" and opt_ins.groups is not None:
        return _group(binding, opt_ins.groups)
    return judge(binding, rule)


def _prefixed(binding: AclBinding, rule: AclRule, there: TopicsThere) -> AclBinding | Reason:
    """As a literal one, of which the prefix takes the place of the topic."""
    fitting = replace(rule, replicates=lambda prefix: there.fits(prefix, rule.remote_topic(prefix)))
    verdict = judge(replace(binding, pattern="LITERAL"), fitting)
    if isinstance(verdict, AclBinding):
        return replace(verdict, pattern="PREFIXED")
    return Reason.TOO_WIDE if verdict is Reason.NOT_MIRRORED else verdict


def _group(binding: AclBinding, follows: Callable[[str], bool]) -> AclBinding | Reason:
    if not binding.readable:
        return Reason.UNKNOWN
    if binding.pattern != "LITERAL":
        return Reason.NOT_LITERAL
    if binding.name == EVERYTHING:
        return Reason.TOO_WIDE
    if not follows(binding.name):
        return Reason.GROUP_NOT_MIRRORED
    operation = OF_GROUPS[binding.permission].get(binding.operation)
    return Reason.GROUP_OPERATION if operation is None else replace(binding, operation=operation)
