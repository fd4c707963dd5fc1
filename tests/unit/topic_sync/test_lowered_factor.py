"""A replication factor above the brokers is reported once, for control topics and mirrored ones."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep_kafka.admin.lowered_factor import warn_of_lowered
from lockstep_rules.topic_plan import TopicRules
from lockstep_topic_sync.topic_creator import TopicCreator

WANTED = cast(TopicRules, SimpleNamespace(replication_factor=3))


class TargetOfOneBroker:
    """The context of a flow whose target has one broker."""

    def __init__(self, alias: str) -> None:
        self.target = SimpleNamespace(alias=alias, broker_count=self._count_brokers)
        self.events: list[tuple[str, int, dict[str, Any]]] = []

    async def _count_brokers(self) -> int:
        return 1

    async def event(self, kind: str, *, text: str, level: int, **detail: Any) -> None:
        self.events.append((kind, level, detail))


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[Any, ...]]:
    return [(r.text, r.wanted, r.brokers) for r in caplog.records if r.msg == "replication factor lowered"]  # type: ignore[attr-defined]  # keys of the line


@pytest.mark.parametrize("own_topics_first", [True, False])
async def test_lowered_factor_is_logged_once_for_all_topics(
    caplog: pytest.LogCaptureFixture, own_topics_first: bool
) -> None:
    alias = f"lowered-{own_topics_first}"
    contexts = [TargetOfOneBroker(alias), TargetOfOneBroker(alias)]
    if own_topics_first:
        warn_of_lowered(alias, 3, brokers=1)
    for ctx in contexts:
        creator = TopicCreator(cast(Any, ctx), cast(Any, None), lambda _: None)
        assert [await creator._replication_factor(WANTED) for _ in range(2)] == [1, 1]
    if not own_topics_first:
        warn_of_lowered(alias, 3, brokers=1)
    ((text, wanted, brokers),) = lines(caplog)
    assert alias in text
    assert (wanted, brokers) == (3, 1)
    event = ("ReplicationFactorLowered", logging.DEBUG, {"wanted": 3, "brokers": 1})
    assert [ctx.events for ctx in contexts] == [[event], [event]], "each flow has its event"


def test_factor_that_the_cluster_can_have_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_lowered("enough", 3, brokers=3)
    assert lines(caplog) == []
