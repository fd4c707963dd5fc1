"""The codecs of batches that a cluster does not take, as far as its kind and its request versions say. Pure.

A service that is not in `REFUSED_BY_KIND` may refuse codecs, too. That shows in its answers to batches.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from lockstep_rules.clusters.cluster_capabilities import Capability
from lockstep_rules.clusters.cluster_kind import ClusterKind
from lockstep_state.kafka.kafka_requests import KafkaRequest

OF_ZSTD = 7
"""The first version of Produce that takes batches in zstd (KIP-110)."""

REFUSED_BY_KIND: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        ClusterKind.EVENT_HUBS: {
            "gzip": "by its documents, on the Standard tier",
            **dict.fromkeys(("snappy", "lz4", "zstd"), "by its documents"),
        }
    }
)
"""The codecs that a kind of cluster refuses, each with how that is known."""


def refused_codecs(product: str, lacks: Iterable[Capability]) -> dict[str, str]:
    """Return the codecs that a target refuses, each with how that is known.

    Args:
        product: The kind of cluster.
        lacks: The capabilities that it lacks.
    """
    refused = dict(REFUSED_BY_KIND.get(product, {}))
    if any((lack.request, lack.oldest) == (KafkaRequest.PRODUCE, OF_ZSTD) for lack in lacks):
        refused.setdefault("zstd", f"it does not know Produce {OF_ZSTD}")
    return refused
