"""Clients and answers of a cluster that flows of a file share."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_ops.plan.shared_cluster import KeptAnswers, SharedClusters

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
    clusters = SharedClusters(flows.values())
    first = clusters.source(flows["A->B"])
    assert clusters.source(flows["A->C"]) is first
    assert clusters.target(flows["B->A"]) is first
    assert clusters.target(flows["A->B"]) is not clusters.target(flows["A->C"])


def test_flow_with_other_settings_has_a_client_of_its_own(tmp_path: Path) -> None:
    flows = flows_of(tmp_path, "A->C.source.admin.request.timeout.ms = 7777")
    clusters = SharedClusters(flows.values())
    assert clusters.source(flows["A->C"]) is not clusters.source(flows["A->B"])
    assert clusters.target(flows["B->A"]) is clusters.source(flows["A->B"])


def test_shared_client_knows_what_each_flow_needs(tmp_path: Path) -> None:
    flows = flows_of(tmp_path)
    clusters = SharedClusters(flows.values())
    access = clusters.source(flows["A->B"]).access
    assert "lacks Read on topic orders" in str(access.remedy("topic", "orders", "Read"))
    assert {grant.resource for grant in access.grants} >= {"topic", "group", "cluster"}
    assert any(grant.operation == "Write" for grant in access.grants), "it is the target of B->A too"


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
