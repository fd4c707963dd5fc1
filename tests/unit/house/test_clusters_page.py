"""The page of clusters is what profiles and expectations make of it."""

from tests.support.cluster_expectations import EXPECTED, Role
from tests.support.known_clusters import KNOWN_CLUSTERS
from tools.docs.clusters import PAGE, page


def test_clusters_page_matches_profiles_and_expectations() -> None:
    stale = "docs/reference/clusters.md is stale: python -m tools.docs.clusters"
    assert PAGE.read_text(encoding="utf-8") == page(), stale


def test_every_known_cluster_has_expectations_in_both_roles() -> None:
    assert set(EXPECTED) == {(name, role) for name in KNOWN_CLUSTERS for role in Role}
