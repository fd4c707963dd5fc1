"""What `lockstep watch` does with a topic that may not be read."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from lockstep_cli.commands import watch
from lockstep_config import load
from lockstep_kafka.common.errors import NotPermitted
from lockstep_kafka.topics import topic_follower
from lockstep_ops import clusters
from lockstep_ops.exit_codes import Exit
from tests.support.command_line import lockstep


class Target:
    async def probe(self, _within: object) -> None: ...

    async def topic_names(self) -> dict[str, int]:
        return {"mm2-lockstep-state.A.internal": 1}


class Follower:
    """Of topics that have nothing. That of events may not be read, if `denied`."""

    denied = False

    def __init__(self, _conf: object, topic: str, **_given: object) -> None:
        self._topic = topic

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def caught_up(self, **_given: object) -> None:
        if self.denied and "events" in self._topic:
            raise NotPermitted("B", "to read", f"topic {self._topic}")


@pytest.mark.parametrize("denied", [False, True])
def test_watch_of_a_topic_that_is_denied_ends_with_trouble(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, denied: bool
) -> None:
    monkeypatch.setattr(Follower, "denied", denied)
    monkeypatch.setattr(topic_follower, "TopicFollower", Follower)
    monkeypatch.setattr(clusters, "target_client", lambda _, **_given: Target())
    topics = ["--topic", "events", "--topic", "state"]
    ran = lockstep("watch", file(), "--no-follow", *topics)
    assert ran.exit_code == (Exit.TROUBLE if denied else Exit.FINE)
    assert ("does not permit" in ran.stderr) == denied
    assert ran.stderr.splitlines()[0] == (
        "watching mm2-lockstep-state.A.internal; B has no topic mm2-lockstep-events.A.internal: nothing to show"
    )


def test_watch_names_what_it_waits_for(file: Callable[..., Path]) -> None:
    settings = load(file(), {}).flows[0]
    views = watch._views(settings, ("events", "state"), watch._Screen("text", frozenset(), False), False)
    events, state = (view.topic.name for view in views)
    assert watch._what_is_watched(views, frozenset(), False) == f"watching {events}, {state}; Ctrl-C ends it"
    assert watch._what_is_watched(views, frozenset({("B", events)}), False) == (
        f"watching {state}; waiting for {events}, which B does not have yet; Ctrl-C ends it"
    )
    both = frozenset({("B", events), ("B", state)})
    assert watch._what_is_watched(views, both, False).startswith(f"waiting for {events}, {state}, which B does not")
