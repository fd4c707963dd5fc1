"""doctor's check of ACLs that are missing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import Access, Remedy, needed_access, target_grants
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_ops.cluster_snapshot import ClusterSnapshot
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_ops.doctor.checks.rights import judge_rights
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.doctor.flow_examination import examine_rights
from lockstep_ops.exit_codes import Exit

EVERYTHING = frozenset({"READ", "WRITE", "CREATE", "DESCRIBE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"})
Settings = Callable[..., FlowSettings]


@dataclass(frozen=True)
class FakeCluster:
    """`topics` are all of its topics. Brokers list those that we may describe, and say nothing of others."""

    alias: str
    access: Access
    topics: tuple[str, ...] = ()
    may: Callable[[str], bool] = field(default=lambda name: True)
    operations: frozenset[str] = EVERYTHING
    reports: bool = True
    """Brokers say what a client may do."""

    async def topic_names(self) -> dict[str, int]:
        return {name: 1 for name in self.topics if self.may(name)}

    async def topic_operations(self, names: Iterable[str]) -> Outcome[frozenset[str]]:
        operations: Outcome[frozenset[str]] = Outcome()
        for name in names:
            if not self.may(name):
                operations.denied[name] = NotPermitted(self.alias, "describe", f"topic {name}")
            elif name in self.topics and not self.reports:
                continue
            elif name in self.topics:
                operations.done[name] = self.operations
            else:
                operations.failed[name] = RequestRefused(self.alias, "describe", f"topic {name}", 3, "unknown topic")
        return operations

    async def group_operations(self, names: Iterable[str]) -> Outcome[frozenset[str]]:
        return Outcome(dict.fromkeys(names if self.reports else (), EVERYTHING))

    async def cluster_operations(self) -> frozenset[str] | None:
        return EVERYTHING if self.reports else None


def nothing(_name: str) -> bool:
    return False


def cluster(
    settings: FlowSettings,
    alias: str,
    *topics: str,
    may: Callable[[str], bool] = lambda _: True,
    operations: frozenset[str] = EVERYTHING,
    reports: bool = True,
) -> Admin:
    return cast(Admin, FakeCluster(alias, needed_access(settings, alias), topics, may, operations, reports))


async def examined(settings: FlowSettings, source: Admin, target: Admin) -> list[CheckFinding]:
    return await examine_rights(FlowClusters(settings, ClusterSnapshot(source), ClusterSnapshot(target), None, None))


async def test_rights_that_brokers_omit_are_not_checked(settings: Settings) -> None:
    flow = settings()
    findings = await examined(
        flow, cluster(flow, "A", "orders", reports=False), cluster(flow, "B", "A.orders", reports=False)
    )
    assert [finding.result for finding in findings] == [Result.UNKNOWN, Result.UNKNOWN]
    assert all("are not checked" in finding.detail for finding in findings)
    assert {finding.probe_exit for finding in findings} == {Exit.FINE}


async def test_rights_are_not_ok_where_the_source_hides_its_topics(settings: Settings) -> None:
    flow = settings()
    source, target = cluster(flow, "A", "orders.eu", may=nothing), cluster(flow, "B")
    on_source, *offset_syncs, on_target = await examined(flow, source, target)
    assert {finding.result for finding in offset_syncs} == {Result.FAILED}
    assert on_source.result is Result.UNKNOWN
    assert on_source.detail.startswith("A shows no topic. It has none, or User:OURS lacks Read on topic *")
    assert on_source.fix.endswith("--operation Read --topic '*'")
    assert on_source.probe_exit is Exit.TROUBLE
    assert on_target.result is Result.OK


async def test_rights_are_ok_where_the_source_has_no_topic_yet(settings: Settings) -> None:
    flow = settings()
    findings = await examined(flow, cluster(flow, "A", "bills"), cluster(flow, "B"))
    assert [finding.result for finding in findings] == [Result.OK, Result.OK]


async def test_rights_are_checked_on_topics_that_exact_cycles_select(settings: Settings) -> None:
    """`B.orders` is no copy, for B has no topic `orders`. Its own copy is `A.B.orders`."""
    flow = settings("A->B.topics = B.orders", "lockstep.cycles = exact")
    findings = await examined(flow, cluster(flow, "A", "B.orders"), cluster(flow, "B", "A.B.orders", may=nothing))
    assert findings[0].result is Result.OK
    assert {finding.result for finding in findings[1:]} == {Result.FAILED}
    read_only = cluster(flow, "A", "B.orders", operations=frozenset({"DESCRIBE"}))
    lacks, *_ = await examined(flow, read_only, cluster(flow, "B"))
    assert lacks.result is Result.FAILED
    assert lacks.detail.startswith("A: User:OURS lacks Read on topic *")


async def test_rights_that_the_target_hides_behind_are_missing(settings: Settings) -> None:
    """A topic that we may not describe is not listed; asked about by its name, brokers refuse."""
    flow = settings()
    findings = await examined(flow, cluster(flow, "A", "orders.eu"), cluster(flow, "B", "A.orders.eu", may=nothing))
    assert {finding.result for finding in findings[1:]} == {Result.FAILED}
    lacking = " ".join(finding.fix for finding in findings[1:])
    needed = {grant.name for grant in target_grants(flow) if grant.resource == "topic"}
    assert all(f"--topic {name}" in lacking for name in needed)
    assert "--operation Write --topic A. --resource-pattern-type prefixed" in lacking


def test_missing_rights_of_one_command_are_one_line() -> None:
    command, other_command = "kafka-acls --add --group '*'", "kafka-acls --add --cluster"
    missing = [
        Remedy("User:m lacks Describe on group a", command),
        Remedy("User:m lacks Alter on the cluster", other_command),
        Remedy("User:m lacks Describe on group b", command),
    ]
    groups, cluster = judge_rights("A->B", "B", missing)
    assert groups.detail == "B: User:m lacks Describe on group a, and 1 more that the same command grants"
    assert (groups.result, groups.fix) == (Result.FAILED, command)
    assert (cluster.detail, cluster.fix) == ("B: User:m lacks Alter on the cluster", other_command)


def test_no_missing_right_is_no_line() -> None:
    assert list(judge_rights("A->B", "B", [])) == []
