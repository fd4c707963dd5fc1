"""Least privilege from a first start on: each missing permission is named, and the declared ones are enough."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from lockstep_config.credentials.permissions import Grant, source_grants, target_grants
from lockstep_state.names import Flow
from tests.conftest import GuardedPair
from tests.support.clusters import admin, delete_topic
from tests.support.mirror_permissions import (
    ALONE,
    NEWCOMER,
    SAID,
    WITHIN,
    Scene,
    at_the_start,
    comes_with,
    command,
    until,
)

pytestmark = pytest.mark.timeout(900)
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


# -- at a first start --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_permissions_of_a_first_start_are_named_until_all_work(pair: GuardedPair, tmp_path: Path) -> None:
    scene = Scene(pair, tmp_path, NEWCOMER, Flow("leastE", "leastF"))
    brokers = {"A": pair.a, "B": pair.b}
    lists = {"A": source_grants(scene.settings), "B": target_grants(scene.settings)}
    missing = [(alias, grant) for alias, grants in lists.items() for grant in grants if at_the_start(grant)]
    # The right to create all copies includes their checkpoints.
    missing = [one for one in missing if not any(comes_with(one[1], other) for other in lists[one[0]])]
    assert len(missing) == sum(at_the_start(grant) for _, grant in ALONE)
    if "heartbeats" in admin(pair.b.bootstrap).list_topics(timeout=WITHIN).topics:  # of another flow
        delete_topic(pair.b.bootstrap, "heartbeats")

    def said(alias: str, grant: Grant) -> bool:
        return any(command(grant, scene, brokers[alias]) in service.text() for service in scene.services.values())

    with scene.granted(lists["A"], lists["B"]), ExitStack() as stack:
        for alias, grant in missing:
            brokers[alias].revoke(NEWCOMER, [grant])
        for service in scene.services.values():
            stack.enter_context(service)
        while missing:
            named = until(lambda: [one for one in missing if said(*one)], what=f"one of {missing} is said")
            for alias, grant in named:
                brokers[alias].grant(NEWCOMER, [grant])
                missing.remove((alias, grant))
        scene.wait_done(scene.poke())
        until(lambda: not scene.troubles(), what="nothing is wrong any more")
        for name, service in scene.services.items():
            for cause in {line["text"].partition("; to grant it: ")[2] for line in service.lines() if "text" in line}:
                assert not cause or service.text().count(cause) <= SAID, (name, cause)


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "lines"),
    [
        pytest.param(
            1, ("offset-syncs.topic.location = target", "sync.topic.acls.enabled = true"), id="syncs on target"
        ),
        pytest.param(2, (IDENTITY, "exactly.once.source.support = enabled"), id="same names, transactions"),
    ],
)
def test_mirror_with_other_settings_needs_exactly_its_permissions(
    pair: GuardedPair, tmp_path: Path, number: int, lines: tuple[str, ...]
) -> None:
    scene = Scene(pair, tmp_path, NEWCOMER, Flow(f"leastC{number}", f"leastD{number}"), *lines)
    source, target = source_grants(scene.settings), target_grants(scene.settings)
    if scene.settings.data_plane.offset_syncs_location == "target":
        assert {grant.operation for grant in source} == {"Read", "Describe", "DescribeConfigs"}
    since = len(pair.a.denied(NEWCOMER)), len(pair.b.denied(NEWCOMER))
    with scene.granted(source, target), scene.running():
        scene.wait_done(scene.poke())
        scene.check_whole(since)
