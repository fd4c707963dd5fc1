"""The ACLs of a remote topic: principals that may read the source topic may read it (`mm2-behaviour.md` §4.6).

Beyond that rule, where the file asks for it: prefixed patterns, and reading of groups.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile

from lockstep_rules.topic_plan import name_owners
from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import MirroredTopic

NAMED = 20
"""The number of bindings left out that the row names. It counts the others."""


class LeftOutReason(Enum):
    """The reasons why a source binding is not copied, in the words of `acls.md`, the least expected first."""

    UNKNOWN = "unknown-word"
    """Its operation, or another word, is unknown to this release."""
    TOO_WIDE = "too-wide"
    """Its prefix also matches topics, on either side, that are no part of the mirror; or it is about every group."""
    GROUP_OPERATION = "group-operation"
    """The operation on a group is none that is copied (`GROUP_OPERATIONS`)."""
    GROUP_NOT_MIRRORED = "group-not-mirrored"
    NOT_LITERAL = "not-literal"
    WRITE = "write"
    """ALLOW WRITE is never copied: only the mirror writes to a remote topic."""
    NOT_MIRRORED = "not-mirrored"
    NOT_A_TOPIC = "other-resource"


_RANKS = {reason: rank for rank, reason in enumerate(LeftOutReason)}


@dataclass(frozen=True, slots=True)
class AclRule:
    """The rule that selects source topics and names their remote topics."""

    replicates: Callable[[str], bool]
    remote_topic: Callable[[str], str]

    def with_renames(self, rows: Iterable[MirroredTopic], left_out: Collection[str] = ()) -> "AclRule":
        """Return the rule of a flow whose renames may give several topics one name.

        Readers of a topic that is left out may not read the copy of the other one.

        Args:
            rows: The rows of topic-sync.
            left_out: Further topics that are left out.
        """
        rows = list(rows)
        owners = name_owners(rows)
        left_out = {*left_out, *(row.source_topic for row in rows if row.phase == "left-out")}

        def replicates(topic: str) -> bool:
            owner = owners.get(self.remote_topic(topic), topic)
            return self.replicates(topic) and topic not in left_out and owner == topic

        return replace(self, replicates=replicates)


@dataclass(frozen=True, slots=True)
class LeftOutBinding:
    """A source binding that is not copied, and the reason."""

    binding: AclBinding
    reason: LeftOutReason


Verdict = Callable[[AclBinding], AclBinding | LeftOutReason]
"""Returns a source binding as it belongs on the target, or why it is not copied."""


@dataclass(frozen=True, slots=True)
class AclPlan:
    """The bindings that belong on the target, and those of them that it lacks."""

    expected: Mapping[AclBinding, str]
    """The bindings, each with the source name of the resource that it was copied from."""
    missing: tuple[AclBinding, ...]
    left_out: tuple[LeftOutBinding, ...]

    @property
    def present(self) -> int:
        return len(self.expected) - len(self.missing)

    @property
    def left_out_counts(self) -> tuple[tuple[str, int], ...]:
        """The number of bindings left out by reason, in the order of `LeftOutReason`."""
        counts = Counter(entry.reason for entry in self.left_out)
        return tuple((reason.value, counts[reason]) for reason in LeftOutReason if counts[reason])

    @property
    def left_out_names(self) -> tuple[tuple[str, str], ...]:
        """The first `NAMED` bindings left out, each with its reason."""
        return tuple((str(entry.binding), entry.reason.value) for entry in self.left_out[:NAMED])

    @property
    def unknown(self) -> tuple[AclBinding, ...]:
        """Source bindings that could not be read in full. They are reported and never re-created."""
        return tuple(entry.binding for entry in self.left_out if entry.reason is LeftOutReason.UNKNOWN)


def judge(binding: AclBinding, rule: AclRule) -> AclBinding | LeftOutReason:
    """Return the binding as it belongs on the target by MM2's rule, or why it is not copied.

    ALLOW ALL becomes ALLOW READ, so that only the mirror writes to a remote topic. DENY stays as it is.
    """
    if not binding.readable:
        return LeftOutReason.UNKNOWN
    if binding.resource != "TOPIC":
        return LeftOutReason.NOT_A_TOPIC
    if binding.pattern != "LITERAL":
        return LeftOutReason.NOT_LITERAL
    allow = binding.permission == "ALLOW"
    if allow and binding.operation == "WRITE":
        return LeftOutReason.WRITE
    if not rule.replicates(binding.name):
        return LeftOutReason.NOT_MIRRORED
    operation = "READ" if allow and binding.operation == "ALL" else binding.operation
    return replace(binding, name=rule.remote_topic(binding.name), operation=operation)


def plan(source: Iterable[AclBinding], target: Iterable[AclBinding], verdict: Verdict) -> AclPlan:
    """Compare the source's bindings with a fresh reading of the target's.

    Planning again after applying finds nothing missing.
    """
    expected: dict[AclBinding, str] = {}
    left_out: list[LeftOutBinding] = []
    for binding in sorted(source):
        match verdict(binding):
            case AclBinding() as copy:
                expected[copy] = binding.name
            case LeftOutReason() as reason:
                left_out.append(LeftOutBinding(binding, reason))
    left_out.sort(key=lambda entry: (_RANKS[entry.reason], entry.binding))
    return AclPlan(expected, tuple(sorted(expected.keys() - set(target))), tuple(left_out))


EVERYTHING = "*"
"""The literal group name that matches all groups."""

GROUP_OPERATIONS = {
    "ALLOW": {"READ": "READ", "DESCRIBE": "DESCRIBE", "ALL": "READ"},
    "DENY": {"READ": "READ", "DESCRIBE": "DESCRIBE", "ALL": "ALL"},
}
"""Copied operations on groups by permission, with the operation on the target. MirrorMaker 2 does so for topics."""


@dataclass(frozen=True, slots=True)
class PrefixCandidates:
    """The topics that a prefix could match on either side."""

    source: Sequence[str]
    """Every topic of the source, sorted."""
    target: Sequence[str]
    """Every topic of the target, sorted."""
    remote: Mapping[str, str]
    """Mirrored topics of the source, with their names on the target."""
    copies: Mapping[str, str]
    """Topics of the target that are copies, also of topics that the source has no more, each with its source topic."""

    @classmethod
    def from_listings(
        cls, source: Iterable[str], target: Iterable[str], copies: Mapping[str, str], rule: AclRule
    ) -> "PrefixCandidates":
        """Return the candidates by the topics of both sides, and by `copy_owners` of topic-sync's rows."""
        names = sorted(source)
        remote = {name: rule.remote_topic(name) for name in names if rule.replicates(name)}
        return cls(names, sorted(target), remote, {**copies, **{copy: name for name, copy in remote.items()}})

    def covers_copies(self, prefix: str, remote_prefix: str) -> bool:
        """Return whether a binding of `prefix` may be copied as one of `remote_prefix`.

        Every source topic with the prefix is mirrored to a name with the remote one. Every topic of the target with the
        remote one is a copy of a topic with the prefix.
        """
        mirrored = (self.remote.get(topic, "").startswith(remote_prefix) for topic in _with(prefix, self.source))
        originals = map(self.copies.get, _with(remote_prefix, self.target))
        return all(mirrored) and all(topic is not None and topic.startswith(prefix) for topic in originals)


def _with(prefix: str, names: Sequence[str]) -> Iterator[str]:
    first = bisect_left(names, prefix)
    return takewhile(lambda name: name.startswith(prefix), (names[index] for index in range(first, len(names))))


def judge_with(
    binding: AclBinding, rule: AclRule, prefixes: PrefixCandidates | None, groups: Callable[[str], bool] | None
) -> AclBinding | LeftOutReason:
    """Return MM2's verdict, extended by what the file asks for.

    `prefixes` has the topics by which prefixed patterns are judged, `groups` accepts the groups that are followed.
    None: bindings of that kind are not copied.
    """
    if binding.resource == "TOPIC" and binding.pattern == "PREFIXED" and prefixes is not None:
        return _prefixed(binding, rule, prefixes)
    if binding.resource == "GROUP" and groups is not None:
        return _group(binding, groups)
    return judge(binding, rule)


def _prefixed(binding: AclBinding, rule: AclRule, topics: PrefixCandidates) -> AclBinding | LeftOutReason:
    """Return the verdict on a prefixed pattern. It is judged as a literal one whose topic is the prefix."""
    fitting = replace(rule, replicates=lambda prefix: topics.covers_copies(prefix, rule.remote_topic(prefix)))
    verdict = judge(replace(binding, pattern="LITERAL"), fitting)
    if isinstance(verdict, AclBinding):
        return replace(verdict, pattern="PREFIXED")
    return LeftOutReason.TOO_WIDE if verdict is LeftOutReason.NOT_MIRRORED else verdict


def _group(binding: AclBinding, follows: Callable[[str], bool]) -> AclBinding | LeftOutReason:
    if not binding.readable:
        return LeftOutReason.UNKNOWN
    if binding.pattern != "LITERAL":
        return LeftOutReason.NOT_LITERAL
    if binding.name == EVERYTHING:
        return LeftOutReason.TOO_WIDE
    if not follows(binding.name):
        return LeftOutReason.GROUP_NOT_MIRRORED
    operation = GROUP_OPERATIONS[binding.permission].get(binding.operation)
    return LeftOutReason.GROUP_OPERATION if operation is None else replace(binding, operation=operation)
