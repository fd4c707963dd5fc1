"""Two and three replicas of each control service: killed, killed in the midst of an act, frozen and woken
(`architecture.md` §4).

What must hold each time: another acts within ten seconds, no command is lost, nothing is done twice, no fact stands
twice in state, and a leader that slept through its successor's election changes nothing.
"""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from lockstep_runtime.state.leadership import leader_label
from lockstep_runtime.state.state_fold import owner_label
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope, service_connector
from lockstep_state.events import Event
from lockstep_state.names import commands_topic
from lockstep_state.rows.state_rows import DesiredState, GroupStatus, Leader
from tests.conftest import Pair
from tests.faults.replicas import Replicas
from tests.faults.subjects import SUBJECTS, Checkpoints, Subject, until
from tests.support.clusters import Record, produce

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TAKEN_OVER_WITHIN = 10.0
SLOW_S = 1.0
"""By how much each answer of the target is late, so that what was done can be seen well before whoever did it hears of
it."""

SETTLED = 6.0
"""Seconds in which several rounds of each service have looked at everything: for what must *not* happen."""


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest, pair: Pair) -> Iterator[Subject]:
    subject = SUBJECTS[request.param](pair.a, pair.b)
    subject.prepare()
    yield subject
    for broker in (pair.a, pair.b):
        assert broker.proxy is not None
        broker.proxy.heal()


def ask(subject: Subject, command: Command) -> None:
    key, value = command.encode()
    produce(subject.b.bootstrap, commands_topic(subject.flow), [Record(key, value, partition=0)])


def answers(subject: Subject, command: str) -> list[Event]:
    return [event for event in subject.events() if event.answers == command]


@pytest.mark.parametrize("number", [2, 3])
def test_other_replica_acts_within_ten_seconds(subject: Subject, tmp_path: Path, number: int) -> None:
    took = []
    with Replicas(subject, tmp_path / "plain", number) as replicas:
        for turn in range(2):
            victim = replicas.settled()
            took.append(replicas.kill_and_wait(victim))
            subject.work(turn)
            until(partial(subject.done, turn), what=f"work {turn} is done by the others")
            victim.start()
        replicas.settled()
    seconds = ", ".join(f"{each:.1f}" for each in took)
    print(f"{subject.service}, {number} replicas: another acts {seconds} s after kill -9")  # noqa: T201 - a figure
    assert max(took) < TAKEN_OVER_WITHIN
    assert subject.said_twice() == []


def test_act_of_a_leader_killed_before_its_event_has_one_event(subject: Subject, tmp_path: Path) -> None:
    """Killed when its act can be seen on the cluster, and before it has heard of that itself."""
    assert subject.b.proxy is not None
    with Replicas(subject, tmp_path / "proxied", 2, proxied=True) as replicas:
        replicas.settled()
        subject.work(0)
        until(lambda: subject.done(0), what="the first work is done")
        victim = replicas.settled()
        subject.b.proxy.delay(answers=SLOW_S)
        subject.work(1)
        until(lambda: subject.done(1), what="the second work can be seen")
        victim.kill()
        subject.b.proxy.heal()
        ask(subject, Command(id="after", verb="refresh", service=subject.service))
        until(lambda: answers(subject, "after"), what="another leads and answers")
        subject.work(2)
        until(lambda: subject.done(2), what="another works on")
    assert len(answers(subject, "after")) == 1
    assert subject.said_twice() == []
    if isinstance(subject, Checkpoints):
        for place, groups in subject.written().items():
            assert len(set(groups)) == len(groups), f"a checkpoint at {place} was written twice: {Counter(groups)}"


def test_command_of_a_leader_killed_before_its_answer_has_one_answer(subject: Subject, tmp_path: Path) -> None:
    """`pause`: the act is a row, the answer an event. Where that row is another service's to write, `refresh`, and the
    act is what a round does."""
    assert subject.b.proxy is not None
    scope = Scope.for_connector(service_connector(subject.service))
    paused = scope.connector.owner == subject.service
    verb = "pause" if paused else "refresh"
    with Replicas(subject, tmp_path / "proxied", 2, proxied=True) as replicas:
        victim = replicas.settled()
        ask(subject, Command(id="before", verb="refresh", service=subject.service))
        until(lambda: answers(subject, "before"))
        subject.b.proxy.delay(answers=SLOW_S)
        if not paused:
            subject.work(0)
        ask(subject, Command(id="asked", verb=verb, service=subject.service, subject=str(scope)))

        def done() -> bool:
            return any(isinstance(row, DesiredState) for _, row in subject.rows()) if paused else subject.done(0)

        until(done, what="the act can be seen")
        victim.kill()
        assert answers(subject, "asked") == [], "it was killed before it answered"
        subject.b.proxy.heal()
        (answer,) = until(lambda: answers(subject, "asked"), what="another answers")
        assert answer.kind == ("Paused" if paused else "Refreshed")
        assert answer.instance != f"replica-{replicas.each.index(victim)}"
        victim.start()
        replicas.settled()
        time.sleep(SETTLED)
    assert [len(answers(subject, known)) for known in ("before", "asked")] == [1, 1]
    assert sum(isinstance(row, DesiredState) for _, row in subject.rows()) == paused
    assert subject.said_twice() == []


def test_a_leader_that_wakes_changes_nothing(subject: Subject, tmp_path: Path) -> None:
    """It is frozen with questions under way. The answers lie in its sockets when it wakes: what the source was like
    then, and that its group still knew it."""
    assert subject.a.proxy is not None
    assert subject.b.proxy is not None
    old, new = (
        Replicas(subject, tmp_path / "old", 1, name="old", proxied=True),
        Replicas(subject, tmp_path / "new", 1, name="new"),
    )
    with old, new:
        (successor,) = new.each
        successor.kill()
        sleeper = old.settled()
        subject.a.proxy.hold()
        subject.work(0)
        time.sleep(2.5)  # whatever it does each second or two, it asks the source again
        subject.b.proxy.hold()
        time.sleep(1.2)  # a heartbeat is under way
        psutil.Process(sleeper.pid).send_signal(signal.SIGSTOP)
        subject.a.proxy.heal()
        subject.b.proxy.heal()
        successor.start()
        until(lambda: successor.status(str(subject.flow))["acting"], what="the successor acts")
        until(lambda: subject.done(0), what="the successor does what is to be done")
        subject.move_on(0)
        until(lambda: subject.moved_on(0), what="the successor follows")
        stood, woken_ms = subject.standing(), time.time_ns() // 1_000_000
        leaders = subject.leaders()
        psutil.Process(sleeper.pid).send_signal(signal.SIGCONT)
        time.sleep(SETTLED)
        until(lambda: sleeper.page("/live")[0] == 200, what="the old leader lives")
        assert subject.standing() == stood
    term, newest = max(leaders), {row.service: at for at, row in leaders.items()}
    assert {leaders[at].instance for at in newest.values()} == {"new-0"}
    late = [
        row for offset, row in subject.rows() if offset > term and 0 < row.term < newest.get(owner_label(row) or "", 0)
    ]
    assert late == [], "rows of a former term"
    fenced = [
        event for event in subject.events() if event.at_ms >= woken_ms and event.instance == "old-0" and event.term
    ]
    fenced = [event for event in fenced if event.term < min(newest.values())]
    assert fenced == [], "events of a former term"
    assert subject.said_twice() == []


def test_each_group_has_exactly_one_writer(pair: Pair, tmp_path: Path) -> None:
    """Three replicas, all of which have groups, while one of them comes and goes."""
    subject = Checkpoints(pair.a, pair.b)
    subject.prepare()

    def by_group() -> dict[str, set[int]]:
        """The terms in which the rows of each group were written since `since`."""
        found: dict[str, set[int]] = {}
        for offset, row in subject.rows():
            if isinstance(row, GroupStatus) and offset > since:
                found.setdefault(row.group, set()).add(row.term)
        return found

    since = -1
    with Replicas(subject, tmp_path / "plain", 3) as replicas:
        for turn in range(3):
            victim = replicas.settled()
            since = max(offset for offset, _ in subject.rows())
            subject.work(turn)
            until(partial(subject.done, turn), what="every group has its checkpoint")
            until(lambda: by_group().keys() == set(subject.named), what="every group has its row")
            leaders = subject.leaders()
            newest = {row.service: term for term, row in leaders.items()}
            for group, terms in by_group().items():
                share = Scope.parse(f"group:{group}").commands_partition
                assert terms == {newest[leader_label("checkpoint", share, divided=True)]}, group
            writers = {leaders[term].instance for terms in by_group().values() for term in terms}
            assert len(writers) == 3, "all of them write"
            if turn == 0:
                victim.kill()
                replicas.settled()
                victim.start()
    for place, groups in subject.written().items():
        assert len(set(groups)) == len(groups), f"a checkpoint at {place} was written twice: {Counter(groups)}"
    assert subject.said_twice() == []
    assert all(isinstance(row, Leader) for row in subject.leaders().values())
