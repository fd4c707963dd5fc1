"""Snapshots of the clusters that flows of a file share, and the answers that they keep."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from lockstep_config import FlowSettings, load
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted
from lockstep_kafka.session.cluster_reader import ClusterReading
from lockstep_ops import cluster_snapshot
from lockstep_ops.cluster_snapshot import ClusterSnapshot, ClusterSnapshots, KeptAnswers, Unknown, or_unknown
from lockstep_rules.clusters.cluster_capabilities import Role, capabilities_of
from lockstep_state.kafka.kafka_requests import KafkaRequest

FILE = """
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
A->C.enabled = true
B->A.enabled = true
"""


def flows_of(folder: Path, *lines: str) -> dict[str, FlowSettings]:
    path = folder / "mm2.properties"
    path.write_text(FILE + "\n".join(lines) + "\n", encoding="utf-8")
    return {str(settings.flow): settings for settings in load(path, {}).flows}


def test_flows_share_a_cluster_that_they_reach_alike(tmp_path: Path) -> None:
    flows = flows_of(tmp_path)
    clusters = ClusterSnapshots(flows.values(), "plan")
    first = clusters.source(flows["A->B"])
    assert clusters.source(flows["A->C"]) is first
    assert clusters.target(flows["B->A"]) is first
    assert clusters.target(flows["A->B"]) is not clusters.target(flows["A->C"])


def test_flow_with_other_settings_has_a_client_of_its_own(tmp_path: Path) -> None:
    flows = flows_of(tmp_path, "A->C.source.admin.request.timeout.ms = 7777")
    clusters = ClusterSnapshots(flows.values(), "plan")
    assert clusters.source(flows["A->C"]) is not clusters.source(flows["A->B"])
    assert clusters.target(flows["B->A"]) is clusters.source(flows["A->B"])


def test_shared_client_knows_what_each_flow_needs(tmp_path: Path) -> None:
    flows = flows_of(tmp_path)
    clusters = ClusterSnapshots(flows.values(), "plan")
    access = clusters.source(flows["A->B"]).admin.access
    assert "lacks Read on topic orders" in str(access.remedy("topic", "orders", "Read"))
    assert {grant.resource for grant in access.grants} >= {"topic", "group", "cluster"}
    assert any(grant.operation == "Write" for grant in access.grants), "it is the target of B->A too"


async def test_cluster_in_both_roles_is_asked_once_which_requests_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[frozenset[KafkaRequest]] = []

    async def read(_: object, __: str, ___: float, tried: Sequence[KafkaRequest]) -> ClusterReading:
        asked.append(frozenset(tried))
        return ClusterReading("id", "", {})

    monkeypatch.setattr(cluster_snapshot, "read_cluster_versions", read)
    flows = flows_of(tmp_path)
    there, back, elsewhere = flows["A->B"], flows["B->A"], flows["A->C"]
    clusters = ClusterSnapshots([there, back, elsewhere], "plan")
    for cluster in (clusters.source(there), clusters.target(back), clusters.target(elsewhere)):
        await cluster.versions()
    assert asked == [
        frozenset(capability.request for capability in capabilities_of(roles)) for roles in (Role, [Role.TARGET])
    ]


class Question:
    """Answers numbers below ten, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Sequence[int]] = []

    async def __call__(self, numbers: Sequence[int]) -> Mapping[int, str]:
        self.asked.append(numbers)
        if 99 in numbers:
            raise ValueError("refused")
        return {number: str(number) for number in numbers if number < 10}


def test_kept_answers_ask_only_for_what_is_new() -> None:
    question, kept = Question(), KeptAnswers[int, str]()

    async def read() -> None:
        assert await kept.answers([3, 1, 3], question) == {3: "3", 1: "1"}
        assert list(await kept.answers([2, 1], question)) == [2, 1]
        assert await kept.answers([1, 2, 3], question) == {1: "1", 2: "2", 3: "3"}

    asyncio.run(read())
    assert question.asked == [[3, 1], [2]]


def test_kept_answers_do_not_ask_again_where_there_was_none() -> None:
    question, kept = Question(), KeptAnswers[int, str]()

    async def read() -> None:
        assert await kept.answers([50], question) == {}
        assert await kept.answers([50], question) == {}

    asyncio.run(read())
    assert question.asked == [[50]]


def test_kept_answers_ask_again_after_an_error() -> None:
    question, kept = Question(), KeptAnswers[int, str]()

    async def read() -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match="refused"):
                await kept.answers([1, 99], question)

    asyncio.run(read())
    assert question.asked == [[1, 99], [1, 99]]


class Denying:
    """A cluster that permits nothing, and counts what it was asked."""

    alias = "A"

    def __init__(self, error: ClusterError) -> None:
        self.error = error
        self.count = 0

    async def _refuse(self, *_arguments: object) -> Any:
        self.count += 1
        raise self.error

    broker_configs = list_groups = topic_names = _refuse


async def test_fact_that_a_command_can_do_without_is_unknown_and_not_asked_again() -> None:
    cluster = Denying(NotPermitted("A", "DESCRIBE_CONFIGS", "the brokers"))
    snapshot = ClusterSnapshot(cast(Admin, cluster))
    configs = [await snapshot.broker_configs() for _ in range(2)]
    assert configs == [Unknown(cluster.error.to_reason(), is_denied=True)] * 2
    assert str(configs[0]) == str(cluster.error)
    assert cluster.count == 1


async def test_error_is_raised_and_the_fact_asked_for_again() -> None:
    cluster = Denying(ClusterUnreachable("A", "a:9092", "no answer"))
    snapshot = ClusterSnapshot(cast(Admin, cluster))
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            await snapshot.topic_names()
    with pytest.raises(ClusterUnreachable):
        await or_unknown(snapshot.list_groups())
    assert cluster.count == 3
    cluster.error = NotPermitted("A", "LIST", "groups")
    assert await or_unknown(snapshot.list_groups()) == Unknown(cluster.error.to_reason(), is_denied=True)


async def test_quotas_are_unknown_without_a_connection() -> None:
    quotas = await ClusterSnapshot(cast(Admin, Denying(ClusterError("A", "")))).quotas(None)
    assert (str(quotas), isinstance(quotas, Unknown)) == ("there is no connection to ask on", True)
