"""What must hold at the end, each with its figure. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.support.acls import Words
from tests.support.topic_comparison import Comparison
from tools.demo.scene import ACLS, FLOWS, OFFSET_LAG_MAX, READ, SHOP, remote

FRESH_MS = 10_000
"""A heartbeat is written every second; one this old at the end says that the flow has stopped beating."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was to be proved: whether it held, and what was measured."""

    claim: str
    held: bool
    measured: str


@dataclass(frozen=True, slots=True)
class GroupMove:
    """What the group read where: record numbers by partition, in the order in which they came."""

    before: Mapping[int, Sequence[int]]
    after: Mapping[int, Sequence[int]]

    def skipped(self, written: Iterable[int]) -> set[int]:
        """Return the records of the topic that the group never saw."""
        seen = {number for side in (self.before, self.after) for numbers in side.values() for number in numbers}
        return set(written) - seen

    def read_again(self) -> dict[int, int]:
        """Return by partition how many records came a second time, across the move or on one side of it."""
        counts = {}
        for partition in sorted(self.before.keys() | self.after.keys()):
            times = Counter([*self.before.get(partition, ()), *self.after.get(partition, ())])
            counts[partition] = sum(count - 1 for count in times.values())
        return counts


def judge_comparison(flow: str, topic: str, written: int, comparison: Comparison) -> Finding:
    """Judge that a copy is equal, with as many records as were written: two empty topics are equal as well."""
    measured = (
        f"{comparison.compared:,} of {written:,} records compared: {comparison.missing} missing, "
        f"{comparison.doubled} doubled, {comparison.reordered} out of order"
    )
    if comparison.first_difference:
        measured += f"; first difference: {comparison.first_difference}"
    held = comparison.equal and comparison.compared == written and written > 0
    return Finding(f"{flow} {topic}: key, value, headers, timestamp and order are equal", held, measured)


def judge_group(move: GroupMove, written: int) -> list[Finding]:
    """Judge that the group skipped nothing, and read little twice."""
    skipped = move.skipped(range(written))
    again = move.read_again()
    before, after = (sum(len(numbers) for numbers in side.values()) for side in (move.before, move.after))
    lost = f" (first: {sorted(skipped)[:5]})" if skipped else ""
    return [
        Finding(
            "the group skipped nothing when it moved from A to B",
            not skipped and before > 0 and after > 0,
            f"{before:,} records read on A, {after:,} on B, {len(skipped)} of {written:,} skipped{lost}",
        ),
        Finding(
            f"the group read at most {OFFSET_LAG_MAX} records of a partition again",
            max(again.values(), default=0) <= OFFSET_LAG_MAX,
            ", ".join(f"partition {partition}: {count}" for partition, count in again.items()) or "it read nothing",
        ),
    ]


def judge_acls(acls: Iterable[Words]) -> Finding:
    """Judge that who may read or describe the topic may do so with its copy, and that nobody may write it."""
    allowed = {(principal, operation) for permission, operation, principal in acls if permission == "ALLOW"}
    wanted = {(principal, operation) for principal, operation in ACLS if operation != "WRITE"}
    text = ", ".join(sorted(f"{principal} {operation}" for principal, operation in allowed)) or "none"
    return Finding(f"ACLs of {READ} on A are on {remote(FLOWS[0], READ)} on B, WRITE left out", allowed == wanted, text)


def judge_heartbeats(ages_ms: Mapping[str, int | None]) -> Finding:
    """Judge that heartbeats of both flows came until the end."""
    held = len(ages_ms) == len(FLOWS) and all(age is not None and age <= FRESH_MS for age in ages_ms.values())
    text = ", ".join(f"{flow}: {'none' if age is None else f'{age / 1000:.1f} s old'}" for flow, age in ages_ms.items())
    return Finding("heartbeats arrive both ways", held, text)


def judge_traffic(refused: Sequence[str]) -> Finding:
    """Judge that no cluster refused a record: it would not have been there to be mirrored."""
    topics = ", ".join(topic.name for topics in SHOP.values() for topic in topics)
    measured = f"refused: {len(refused)}" + (f", first {refused[0]}" if refused else "")
    return Finding(f"everything written to {topics} was acknowledged", not refused, measured)
