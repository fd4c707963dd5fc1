"""Clusters as nobody sells them: each lacks several things at once. They are copied exactly, or refused by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster_expectations import Role
from tests.support.cluster_profile import ClusterProfile, ConfigRules, ReplicationRule
from tests.support.eventually import wait_until
from tests.support.profiled_life import Brokers, begin_life, profiled_brokers
from tests.support.whole_life import WITHIN, WholeLife

pytestmark = pytest.mark.long

FEW = 2_000
OLD_METADATA = {"metadata": (1, 4)}
OLDEST = {**OLD_METADATA, "produce": (3, 3), "list_offsets": (1, 1), "fetch": (4, 4), "init_producer_id": (0, 0)}
NO_CONFIGS = frozenset({"describe_configs", "incremental_alter_configs"})
COPIED: dict[str, tuple[Role, ClusterProfile]] = {
    "no configs, no ids": (Role.TARGET, ClusterProfile(versions=OLD_METADATA, absent=frozenset({"describe_configs"}))),
    "oldest requests, its own factor, few configs": (
        Role.TARGET,
        ClusterProfile(
            versions=OLDEST,
            absent=NO_CONFIGS,
            configs=ConfigRules(
                refused=frozenset(
                    {"segment.bytes", "message.timestamp.type", "segment.index.bytes", "max.message.bytes"}
                )
            ),
            replication=ReplicationRule(factor=99),
        ),
    ),
    "oldest requests, no groups, no epochs": (
        Role.SOURCE,
        ClusterProfile(versions=OLDEST, absent=NO_CONFIGS | {"offset_for_leader_epoch", "list_groups"}),
    ),
    "does not announce InitProducerId": (Role.TARGET, ClusterProfile(absent=frozenset({"init_producer_id"}))),
    "closes at InitProducerId": (Role.TARGET, ClusterProfile(closes_on=frozenset({"init_producer_id"}))),
}
REFUSED: dict[str, tuple[ClusterProfile, str]] = {
    "closes at CreateTopics": (ClusterProfile(closes_on=frozenset({"create_topics"})), "create topic"),
    "takes no compaction": (
        ClusterProfile(configs=ConfigRules(refused=frozenset({"cleanup.policy"}))),
        "cleanup.policy",
    ),
}
"""Profiles of targets, and what `status` has to name."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Brokers]:
    with profiled_brokers() as brokers:
        yield brokers


def begin(folder: Path, clusters: Brokers, role: Role, profile: ClusterProfile) -> WholeLife:
    life = begin_life(folder, clusters, role, profile, codecs=("none", "gzip", "snappy", "lz4"))
    life.write(0, FEW // 2)
    return life


@pytest.mark.parametrize("name", COPIED)
def test_copy_with_invented_cluster_is_exact_over_a_kill(tmp_path: Path, clusters: Brokers, name: str) -> None:
    life = begin(tmp_path, clusters, *COPIED[name])
    with life.running() as run:
        life.copy_over_kill(run, FEW // 2, FEW, groups="list_groups" not in COPIED[name][1].absent)


@pytest.mark.parametrize("name", REFUSED)
def test_target_that_lacks_what_is_needed_is_refused_by_name(tmp_path: Path, clusters: Brokers, name: str) -> None:
    profile, word = REFUSED[name]
    life = begin(tmp_path, clusters, Role.TARGET, profile)

    def is_named() -> bool:
        text = life.status_text()
        assert word in text, text
        return True

    with life.running():
        wait_until(is_named, within=WITHIN, every=1.0, what=f"status names {word}")
