"""A warning, logged once, that a cluster has fewer brokers than the wanted replicas."""

import logging

log = logging.getLogger(__name__)

_CLUSTERS: set[tuple[str, int]] = set()
"""Clusters and their numbers of brokers for which this process has logged the warning."""


def warn_of_lowered(alias: str, requested: int, brokers: int) -> None:
    """Warn once per cluster that new topics get fewer than `requested` replicas, because it has so few `brokers`.

    One line is for all topics of all flows, internal and mirrored ones. `lockstep run` shows the line of one process
    only.
    """
    if requested <= brokers or (alias, brokers) in _CLUSTERS:
        return
    _CLUSTERS.add((alias, brokers))
    count_text = "1 broker is" if brokers == 1 else f"{brokers} are"
    text = f"{alias}: {requested} replicas wanted for new topics, and {count_text} there; said once, for all of them"
    once = f"replication factor on {alias}"
    log.warning(
        "replication factor lowered", extra={"text": text, "wanted": requested, "brokers": brokers, "once": once}
    )
