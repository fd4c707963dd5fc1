"""Changes since a plan was made: one sentence each."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.plan.plan_document import read_basis, read_body
from lockstep_ops.plan.plan_guard import basis_changes, require_unchanged, setting_changes
from lockstep_ops.plan.rules.flow_plan import BasisTopic, ClusterBasis

File = Callable[..., Path]
ORDERS = BasisTopic(topic_id="1", partitions=2, configs={"retention.ms": "5"})
BASIS = ClusterBasis(alias="A", bootstrap="a:9092", cluster_id="X", topics={"orders": ORDERS})


def changes(present: ClusterBasis) -> list[str]:
    return list(basis_changes(BASIS, present))


def test_same_clusters_have_no_changes() -> None:
    assert changes(BASIS) == []
    assert changes(replace(BASIS, bootstrap="other:9092")) == [], "an address is no cluster"


def test_another_cluster_is_named_by_its_id() -> None:
    assert changes(replace(BASIS, cluster_id="Y")) == ["A was cluster X and is cluster Y"]


@pytest.mark.parametrize(
    ("orders", "sentence"),
    [
        (replace(ORDERS, topic_id="2"), "topic orders on A was deleted and created again"),
        (replace(ORDERS, partitions=3), "topic orders on A had 2 partitions and has 3"),
        (replace(ORDERS, configs={"retention.ms": "6"}), "topic orders on A: retention.ms was 5 and is 6"),
        (replace(ORDERS, configs={}), "topic orders on A: retention.ms was 5 and is unset"),
    ],
)
def test_changed_topic_is_named(orders: BasisTopic, sentence: str) -> None:
    assert changes(replace(BASIS, topics={"orders": orders})) == [sentence]


def test_new_and_gone_topics_are_named() -> None:
    assert changes(replace(BASIS, topics={"payments": ORDERS})) == [
        "topic orders is gone from A, or no longer selected",
        "topic payments is new on A",
    ]


def test_changed_settings_are_named_with_both_values() -> None:
    planned, present = (
        {"topics": "a", "groups": "g", "empty": ""},
        {"topics": "b", "groups": "g", "tasks.max": "2", "empty": "1"},
    )
    assert list(setting_changes("A->B", planned, present)) == [
        "A->B: empty was unset and is 1",
        "A->B: tasks.max was unset and is 2",
        "A->B: topics was a and is b",
    ]


# -- the file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "is no plan"),
        ("{}", "is no plan"),
        ('{"version": 2, "flows": []}', "of version 2, and this release reads version 1"),
    ],
)
def test_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(CannotUse, match=words):
        read_body(path)


def test_missing_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotUse, match=r"plan\.json cannot be read: No such file"):
        read_body(tmp_path / "plan.json")


@pytest.mark.parametrize("body", [None, {}, {"alias": "A", "bootstrap": "a", "cluster_id": "X", "topics": {"t": {}}}])
def test_plan_without_its_basis_is_refused(tmp_path: Path, body: Any) -> None:
    with pytest.raises(CannotUse, match="make it anew"):
        read_basis(tmp_path, body)


async def test_plan_of_other_flows_is_refused_before_any_cluster(tmp_path: Path, file: File) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "flows": [{"flow": "C->D", "settings": {}}]}))
    with pytest.raises(CannotUse, match=r"is not a plan of .*mm2\.properties: only .* has the flow"):
        await require_unchanged(plan, file())


async def test_plan_of_other_settings_is_refused_before_any_cluster(tmp_path: Path, file: File) -> None:
    flows = [{"flow": "A->B", "settings": {}}]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "flows": flows}))
    with pytest.raises(CannotUse, match=r"does not hold any more: A->B: .* was unset and is .* more\); nothing was"):
        await require_unchanged(plan, file("emit.heartbeats.enabled = false"))
