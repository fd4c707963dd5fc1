"""The page of clusters says something of each."""

from tests.support.cluster_expectations import EXPECTED, Role
from tests.support.known_clusters import KNOWN_CLUSTERS


def test_every_known_cluster_has_expectations_in_both_roles() -> None:
    assert set(EXPECTED) == {(name, role) for name in KNOWN_CLUSTERS for role in Role}
