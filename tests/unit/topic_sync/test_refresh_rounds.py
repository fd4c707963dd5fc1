"""Rounds of a flow without topic refreshes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep_rules.filters import NameFilter
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_rules.renames import Rename
from lockstep_rules.topic_plan import Create, TopicRules
from lockstep_state.rows.state_rows import MirroredTopic
from lockstep_topic_sync.app import REFRESH, TopicSync
from lockstep_topic_sync.selection_report import SelectionReport
from tests.support.flow_context import leading, read_row
from tests.support.reasons import reported
from tests.support.topic_settings import PREFIXED


class Scene:
    """A flow without refreshes. What both clusters list is given; what is asked of them is kept."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: dict[str, int] = {}
        self.target: dict[str, int] = {}
        self.listed = 0
        self.written: list[list[str]] = []
        self.grown: list[str] = []
        lines = "refresh.topics.enabled = false\n"
        self.sync = TopicSync(leading(folder, "topic-sync", (0, 5), lines=lines))

        async def list_() -> tuple[dict[str, int], dict[str, int]]:
            self.listed += 1
            return dict(self.source), dict(self.target)

        async def select(*_: object) -> Any:
            return SimpleNamespace(topics={name: f"A.{name}" for name in self.source}, left_out={}, no_copies={})

        async def grow(wanted: Any) -> None:
            self.grown += [topic.source for topic in wanted]

        async def write(topics: Mapping[str, str], *_: object) -> None:
            self.written.append(sorted(topics))

        async def rules_now() -> TopicRules:
            return PREFIXED

        async def nothing(*_: object) -> dict[str, str]:
            return {}

        for name, stand_in in {
            "_list": list_,
            "_rules_now": rules_now,
            "_selected": select,
            "_write": write,
            **dict.fromkeys(("_write_left_out", "_report_hidden", "_write_gone"), nothing),
        }.items():
            monkeypatch.setattr(self.sync, name, stand_in)
        monkeypatch.setattr(self.sync._creator, "create", nothing)
        monkeypatch.setattr(self.sync._creator, "grow", grow)

    async def round(self) -> None:
        await self.sync._refresh()


async def test_topic_that_has_grown_is_read_in_one_more_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer behind the growth may still have the old count."""
    scene = Scene(tmp_path, monkeypatch)
    scene.source, scene.target = {"t": 3}, {"A.t": 1}
    await scene.round()
    assert scene.grown == ["t"]
    scene.target = {"A.t": 3}
    await scene.round()
    assert scene.written == [["t"], ["t"]]
    for _ in range(3):
        await scene.round()
    assert (scene.listed, len(scene.written)) == (2, 2), "nothing is left to see"


async def test_topic_that_fails_does_not_bring_in_new_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    scene.source, scene.target = {"t": 1, "u": 1}, {"A.t": 1}
    scene.sync._failed({"u": reported("a policy refuses it")})
    await scene.round()
    scene.source["secret"] = 1
    await scene.round()
    assert scene.listed == 2, "the topic that fails is tried again"
    assert all("secret" not in topics for topics in scene.written)
    scene.sync._ctx.periodic._triggered.add(REFRESH)
    await scene.round()
    assert "secret" in scene.written[-1], "an operator asked"


async def test_selection_of_no_topic_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = leading(tmp_path, "topic-sync", (0, 5), lines="topics = ORDERS\n")
    report, events = SelectionReport(ctx), list[tuple[str, str, Mapping[str, object]]]()

    async def event(kind: str, subject: str, text: str, **detail: object) -> None:
        events.append((kind, text, detail))

    monkeypatch.setattr(ctx, "event", event)
    for names in (["heartbeats"], ["orders"], ["orders", "u"], ["ORDERS"], ["orders"]):
        await report.on_listed(names)
    assert [detail["total"] for _, _, detail in events] == [1, 1]
    assert events[0][:2] == ("NoTopicSelected", f"0 of 1 topics of {ctx.source.alias} match topics")


async def test_row_says_whose_a_renamed_copy_is_before_it_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it exists, the opposite flow may bring a topic of that name to the source."""
    scene, steps = Scene(tmp_path, monkeypatch), list[object]()
    policy = DefaultReplicationPolicy(renames=(Rename("A.(orders|new)", "A.orders"),))
    rules = replace(PREFIXED, policy=policy, topics=NameFilter((".*",)))

    async def rules_now() -> TopicRules:
        return rules

    async def write_changes(rows: Iterable[MirroredTopic]) -> None:
        for row in rows:
            steps.append((row.phase, row.source_topic, row.target_topic))
            read_row(scene.sync._ctx, replace(row, term=5))

    async def create(_: object, creations: Iterable[Create]) -> None:
        steps.extend(creations)

    monkeypatch.setattr(scene.sync, "_rules_now", rules_now)
    monkeypatch.setattr(scene.sync, "_write_changes", write_changes)
    monkeypatch.setattr(scene.sync._creator, "create", create)
    scene.source = {"orders": 1}
    await scene.round()
    scene.source = {"orders": 2}
    await scene.round()
    created = [Create("orders", "A.orders", partitions) for partitions in (1, 2)]
    assert steps == [("creating", "orders", "A.orders"), *created], "the row is written once"
    selection = await TopicSync._selected(scene.sync, rules, {"orders": 1, "new": 1}, {"A.orders": 1})
    assert selection.topics == {"orders": "A.orders"}
