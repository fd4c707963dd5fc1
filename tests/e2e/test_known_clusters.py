"""Whole lives of flows from and to clusters that are no Apache Kafka of today, as the table of expectations says."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.support.broker import Broker, started
from tests.support.cluster_expectations import EXPECTED, Role
from tests.support.cluster_life import PARTITIONS, ClusterLife
from tests.support.cluster_profile import ClusterProfile
from tests.support.eventually import wait_until
from tests.support.known_clusters import KNOWN_CLUSTERS
from tests.support.proxy import Proxy
from tests.support.runs import LockstepRun

RECORDS, FEW = 20_000, 2_000
"""Those of the long test, and of the short one."""
SHORT = (("msk-serverless", Role.TARGET), ("event-hubs", Role.TARGET))
CASES = tuple(EXPECTED)
WITHIN = 180.0


@pytest.fixture(scope="module")
def clusters() -> Iterator[Pair]:
    """Two brokers of their own: profiles cut the connections of everybody behind a proxy."""
    with ExitStack() as stack:
        a, b = (Broker(alias, authorizer=True, behind=stack.enter_context(Proxy())) for alias in ("A", "B"))
        stack.enter_context(started(a, b))
        yield Pair(a, b)


def begin(folder: Path, clusters: Pair, name: str, role: Role) -> ClusterLife:
    profiles = {role: KNOWN_CLUSTERS[name].profile, role.other: ClusterProfile()}
    return ClusterLife(folder, clusters.a, clusters.b, profiles, *EXPECTED[name, role].lines)


def copy_over_kill(life: ClusterLife, run: LockstepRun, records: int) -> None:
    """Copy the second half of the records over a kill of the data plane, and move a group."""
    half = records // 2
    life.mirrored.wait_mirrored(life.topic, partitions=PARTITIONS, within=WITHIN)
    wait_until(lambda: life.count_copied() > 0, within=WITHIN, what="the copy begins")
    with life.writing(half, records - half):
        wait_until(lambda: life.count_copied() > half, within=WITHIN, what="the copy goes on")
        life.kill_data_plane(run)
        assert life.count_copied() < records, "it was killed in the middle"
    committed = life.commit(0.6)
    for topic in (life.topic, life.table):
        life.mirrored.wait_copied(topic, within=WITHIN)
    life.wait_group_moved(committed)


def switch_over(life: ClusterLife) -> None:
    """Switch over once the group has read on, and compare all records."""
    wait_until(life.is_fine, within=WITHIN, every=2.0, what="status is fine")
    committed = life.commit(0.9)
    life.switch()
    life.wait_group_moved(committed)
    for topic in (life.topic, life.table):
        comparison = life.mirrored.compared(topic)
        assert comparison.equal, comparison


def check_reports(life: ClusterLife, name: str, role: Role) -> None:
    """Each loss was reported, and no other one."""
    expected = EXPECTED[name, role]
    lacks = {life.aliases[role]: expected.lacks, life.aliases[role.other]: frozenset[str]()}
    assert life.lacks_by_doctor() == {alias: bool(lacking) for alias, lacking in lacks.items()}
    assert life.lacks_by_rows() == lacks
    assert (life.reported(), life.acl_phase()) == (expected.events, expected.acls)


@pytest.mark.long
@pytest.mark.parametrize(("name", "role"), CASES)
def test_life_with_known_cluster_is_exact(tmp_path: Path, clusters: Pair, name: str, role: Role) -> None:
    life = begin(tmp_path, clusters, name, role)
    life.write(0, RECORDS // 2)
    assert life.planned_hazards() == EXPECTED[name, role].hazards
    with life.running() as run:
        copy_over_kill(life, run, RECORDS)
        check_reports(life, name, role)
        switch_over(life)


@pytest.mark.parametrize(("name", "role"), SHORT)
def test_copy_with_known_cluster_is_exact_over_a_kill(tmp_path: Path, clusters: Pair, name: str, role: Role) -> None:
    life = begin(tmp_path, clusters, name, role)
    life.write(0, FEW // 2)
    with life.running() as run:
        copy_over_kill(life, run, FEW)
        assert life.reported() == EXPECTED[name, role].events
