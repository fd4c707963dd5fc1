"""Whole lives of flows from and to clusters that are no Apache Kafka of today, as the table of expectations says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import AclStatus
from tests.support.cluster_expectations import EXPECTED, Role
from tests.support.known_clusters import KNOWN_CLUSTERS
from tests.support.profiled_life import Brokers, begin_life, profiled_brokers
from tests.support.whole_life import CODECS, WholeLife

RECORDS, FEW = 20_000, 2_000
"""Those of the long test, and of the short one."""
SHORT = (("msk-serverless", Role.TARGET), ("event-hubs", Role.TARGET))
CASES = tuple(EXPECTED)
HAZARDS = frozenset({"LS015", "LS016", "LS037", "LS038", *(f"LS0{number}" for number in range(25, 31))})
"""Of `plan`: what clusters refuse and lack."""
EVENTS = (
    *("AppendModeChosen", "CodecRefused", "ConfigRefused", "ReplicationFactorRefused", "RequestsLimited"),
    *("RequestUnsupported", "PartitionHalted", "GapFound"),
)
"""Kinds by which services say that they do something in another way."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Brokers]:
    with profiled_brokers() as brokers:
        yield brokers


def begin(folder: Path, clusters: Brokers, name: str, role: Role, records: int) -> WholeLife:
    """Let one cluster answer by its profile, and write the records of the source."""
    expected, profile = EXPECTED[name, role], KNOWN_CLUSTERS[name].profile
    refused = profile.refused_codecs if role is Role.SOURCE else {}
    codecs = [codec for number, codec in enumerate(CODECS) if number not in refused]
    life = begin_life(folder, clusters, role, profile, *expected.lines, lacks=expected.lacks, codecs=codecs)
    life.write_table()
    life.write(0, records)
    return life


def check_events(life: WholeLife, name: str, role: Role) -> None:
    assert {kind for kind in EVENTS if life.mirrored.events(kind)} == EXPECTED[name, role].events


@pytest.mark.long
@pytest.mark.parametrize(("name", "role"), CASES)
def test_life_with_known_cluster_is_exact(tmp_path: Path, clusters: Brokers, name: str, role: Role) -> None:
    life = begin(tmp_path, clusters, name, role, RECORDS // 2)
    _, hazards = life.plan()
    assert hazards.keys() & HAZARDS == EXPECTED[name, role].hazards
    with life.running() as run:
        life.copy_over_kill(run, RECORDS // 2, RECORDS)
        life.check_doctor()
        check_events(life, name, role)
        assert [row.phase for row in life.mirrored.rows(AclStatus)] == [EXPECTED[name, role].acls]
        life.wait_fine()
        life.switch_over()


@pytest.mark.parametrize(("name", "role"), SHORT)
def test_copy_with_known_cluster_is_exact_over_a_kill(tmp_path: Path, clusters: Brokers, name: str, role: Role) -> None:
    life = begin(tmp_path, clusters, name, role, FEW // 2)
    with life.running() as run:
        life.copy_over_kill(run, FEW // 2, FEW)
        check_events(life, name, role)
