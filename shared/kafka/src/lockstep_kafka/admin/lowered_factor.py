"""Warn once that a cluster has fewer brokers than replicas are wanted."""

import logging

log = logging.getLogger(__name__)

_CLUSTERS: set[tuple[str, int]] = set()
"""Clusters, and how many brokers they had, of which this process has warned."""


def warn_of_lowered(alias: str, wanted: int, brokers: int) -> None:
    """Warn once for a cluster that new topics have fewer replicas than `wanted`, because it has so few `brokers`.

    One line is for all topics of all flows, our own and mirrored ones. `lockstep run` shows that of one process only.
    """
    if wanted <= brokers or (alias, brokers) in _CLUSTERS:
        return
    _CLUSTERS.add((alias, brokers))
    count_text = "1 broker is" if brokers == 1 else f"{brokers} are"
    text = f"{alias}: {wanted} replicas wanted for new topics, and {count_text} there; said once, for all of them"
    once = f"replication factor on {alias}"
    log.warning("replication factor lowered", extra={"text": text, "wanted": wanted, "brokers": brokers, "once": once})
