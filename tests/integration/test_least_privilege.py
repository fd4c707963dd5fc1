"""A mirror between brokers that grant exactly what `lockstep_config.credentials.permissions` lists, and with one of it
taken away.

One mirror of all five services runs for the whole file: what is taken from it is given back.
"""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from lockstep_config.credentials.permissions import Grant
from tests.conftest import GuardedPair
from tests.support.clusters import Record, commit_offset, create_topic, produce
from tests.support.guarded import without
from tests.support.mirror_permissions import (
    ALONE,
    FLOW,
    SAID,
    SOURCE,
    TARGET,
    USER,
    Scene,
    at_the_start,
    command,
    narrowed,
    needed_by_itself,
    until,
)

pytestmark = pytest.mark.timeout(900)
LOOKED_FOR = Grant("group", "lockstep-follow", "Describe", "readers that are in no group look for its coordinator")
"""On the source, for who grants groups one by one: refused, it only fills the brokers' logs."""


def after_a_start(grant: Grant) -> bool:
    """Only who begins again needs it."""
    return grant.operation == "Read" and "-events." in grant.name


def when_asked(grant: Grant) -> bool:
    """Only a command needs it."""
    return (grant.operation, grant.name.split(".")[0]) in (
        ("Write", "mm2-lockstep-commands"),
        ("Read", "mm2-offsets"),
        ("Read", "heartbeats"),
    )


ALONE += [("B", one) for one in TARGET if needed_by_itself(one, TARGET)]
"""All that nothing else of the list stands in for, with the cluster."""


# -- with all of it ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(pair: GuardedPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The usual flow, with something to copy all the time."""
    scene = Scene(pair, tmp_path_factory.mktemp("least"), USER, FLOW)
    ended = threading.Event()
    with scene.granted([LOOKED_FOR, *map(narrowed, SOURCE)], [*map(narrowed, TARGET)]):
        always = create_topic(pair.a.bootstrap, scene.topic("always"), partitions=2)
        first = scene.poke()
        with scene.running():
            writer = threading.Thread(target=keep_busy, args=(pair.a.bootstrap, always, ended), daemon=True)
            writer.start()
            try:
                scene.wait_done(first)
                yield scene
            finally:
                ended.set()
                writer.join()


def keep_busy(bootstrap: str, topic: str, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(0.3):
        number += 1
        produce(bootstrap, topic, [Record(b"k", b"v", partition=at) for at in (0, 1)])
        commit_offset(bootstrap, topic, topic, 0, number)


def test_mirror_needs_exactly_the_listed_permissions(busy: Scene) -> None:
    busy.check_whole()


# -- with one of it taken away -----------------------------------------------------------------------------------------


TELLING = ("A", "Read", "*")
"""The one that `make test` takes away."""


def always_needed() -> Iterator[Any]:
    for alias, grant in ALONE:
        if not (at_the_start(grant) or after_a_start(grant) or when_asked(grant)):
            long = () if (alias, grant.operation, grant.name) == TELLING else (pytest.mark.long,)
            name = f"{alias} {grant.operation} {grant.resource} {grant.name}"
            yield pytest.param(alias, grant, id=name, marks=long)


@pytest.mark.parametrize(("alias", "grant"), always_needed())
def test_revoked_permission_is_named_and_granted_again_recovers(busy: Scene, alias: str, grant: Grant) -> None:
    broker = busy.pair.a if alias == "A" else busy.pair.b
    wanted, before = command(grant, busy, broker), busy.logged()
    with without(broker, USER, narrowed(grant)):
        mark = busy.poke()
        busy.change()
        until(lambda: any(busy.lines_with(wanted, before).values()), what=f"{wanted} is said")
    busy.wait_done(mark)
    until(lambda: not busy.troubles(), what="nothing is wrong any more")
    lines = busy.lines_with(wanted, before)
    for service, said in lines.items():
        assert len(said) <= SAID, (service, [line.get("message") for line in said])
    text = next(json.dumps(line) for said in lines.values() for line in said)
    assert f"cluster {busy.aliases[alias]} does not permit" in text
    assert f"User:{USER} lacks {grant.operation} on " in text
    assert grant.feature in text


@pytest.mark.long
def test_permission_of_a_second_start_is_named_and_waited_for(busy: Scene) -> None:
    (grant,) = (one for _, one in ALONE if after_a_start(one))
    broker, service = busy.pair.b, busy.services["heartbeat"]
    assert busy.flow.ask("refresh", "flow").kind == "Refreshed"  # an event that it reads when it begins again
    with without(broker, USER, grant):
        service.stop()
        service.start()
        until(lambda: command(grant, busy, broker) in service.text(), what=f"{grant} is said")
    until(lambda: service.ready() and not service.status(str(FLOW))["degraded"], what="nothing is wrong any more")


def test_start_without_read_on_its_group_names_the_permission(busy: Scene) -> None:
    """The group refuses the member before anything reads records: nothing else hears of it."""
    (grant,) = (
        one for _, one in ALONE if (one.resource, one.operation) == ("group", "Read") and "heartbeat" in one.name
    )
    broker, service = busy.pair.b, busy.services["heartbeat"]
    with without(broker, USER, narrowed(grant)):
        service.stop()
        before = busy.logged()
        service.start()
        until(lambda: busy.lines_with(command(grant, busy, broker), before)["heartbeat"], what=f"{grant} is said")
    until(lambda: service.ready() and not service.status(str(FLOW))["degraded"], what="nothing is wrong any more")


@pytest.mark.long
def test_command_without_its_permission_names_it(busy: Scene) -> None:
    for operation, topic, words in (
        ("Write", "mm2-lockstep-commands", ("pause",)),
        ("Read", "mm2-offsets", ("offsets", "list")),
        ("Read", "mm2-offsets", ("takeover", "--dry-run")),
        ("Read", "mm2-offsets", ("watch", "--topic", "offsets", "--from", "beginning", "--no-follow")),
        ("Read", "heartbeats", ("probe",)),
    ):
        (grant,) = (one for _, one in ALONE if one.operation == operation and one.name.split(".")[0] == topic)
        with without(busy.pair.b, USER, grant):
            said = busy.ask(*words)
        assert said.returncode, said
        assert command(grant, busy, busy.pair.b) in said.stdout + said.stderr
    assert busy.ask("probe").returncode == 0
