"""Checks of the requests that a cluster knows: which product it may be, and what does not work without some. Pure."""

from collections.abc import Iterator

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access_facts import AccessFacts
from lockstep_ops.doctor.checks.check import CheckFinding
from lockstep_rules.clusters.cluster_capabilities import (
    Cost,
    Role,
    known_versions,
    missing_capabilities,
    shared_versions,
)
from lockstep_rules.clusters.cluster_kind import ClusterKind, guess_cluster_kind


def judge_capabilities(facts: AccessFacts, roles: frozenset[Role]) -> Iterator[CheckFinding]:
    """Yield the findings about one cluster that has these roles in the flows."""
    brokers = [broker.versions for broker in facts.brokers if broker.versions]
    if not brokers:
        for check in (registry.PRODUCT, registry.REQUESTS):
            yield check.unknown(facts.alias, "no broker says which requests it knows")
        return
    versions = shared_versions(brokers)
    hosts = [*(host.host for host in facts.hosts), *(broker.host for broker in facts.brokers)]
    kind = guess_cluster_kind(versions, facts.cluster_id, hosts)
    product = "no kind that Lockstep knows" if kind == ClusterKind.UNKNOWN else kind
    yield registry.PRODUCT.ok(facts.alias, f"looks like {product}")
    missing = list(missing_capabilities(known_versions(versions, facts.refused), roles))
    if not missing:
        yield registry.REQUESTS.ok(facts.alias, "knows all that Lockstep asks")
        return
    text = "; ".join(f"without {capability.name} {capability.without}" for capability in missing)
    costs_work = any(capability.cost is Cost.WORK for capability in missing)
    yield (registry.REQUESTS.warning if costs_work else registry.REQUESTS.ok)(facts.alias, text)
