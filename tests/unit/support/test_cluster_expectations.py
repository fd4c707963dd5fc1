"""What is expected of a known cluster follows from the versions of requests that its profile announces."""

import pytest

from lockstep_rules.clusters import cluster_capabilities
from lockstep_rules.clusters.cluster_capabilities import CAPABILITIES
from tests.support.cluster_expectations import EXPECTED, Role
from tests.support.known_clusters import KNOWN_CLUSTERS


@pytest.mark.parametrize(("name", "role"), EXPECTED)
def test_expected_lacks_are_what_the_profile_does_not_announce(name: str, role: Role) -> None:
    profile, of_role = KNOWN_CLUSTERS[name].profile, cluster_capabilities.Role[role.name]
    lacks = {
        capability.name
        for capability in CAPABILITIES
        if of_role in capability.roles and profile.range_of(capability.request.name.lower())[1] < capability.oldest
    }
    assert lacks == EXPECTED[name, role].lacks
