"""Each cluster once: its product, what it lacks, and what that costs the flows. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_rules.clusters.cluster_capabilities import CAPABILITIES, Role
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import ClusterCapabilities, Row


@dataclass(frozen=True, slots=True)
class FlowClusters:
    """A flow, its rows, and by alias why a cluster of it does not answer; "": it answers. None: not asked yet."""

    flow: Flow
    rows: Mapping[str, Row]
    troubles: Mapping[str, str | None]


def cluster_bodies(flows: Iterable[FlowClusters]) -> list[dict[str, Any]]:
    """Return the clusters of these flows by alias.

    A cluster answers if it does so for one flow. What no row says is unknown.
    """
    roles: dict[str, set[Role]] = {}
    names: dict[str, list[str]] = {}
    rows: dict[str, ClusterCapabilities] = {}
    troubles: dict[str, list[str | None]] = {}
    for each in flows:
        for alias, role in ((each.flow.source, Role.SOURCE), (each.flow.target, Role.TARGET)):
            roles.setdefault(alias, set()).add(role)
            names.setdefault(alias, []).append(str(each.flow))
            troubles.setdefault(alias, []).append(each.troubles.get(alias))
            row = each.rows.get(f"{ClusterCapabilities.kind}/{alias}")
            if isinstance(row, ClusterCapabilities) and row.at_ms >= (rows[alias].at_ms if alias in rows else 0):
                rows[alias] = row
    return [
        {
            "alias": alias,
            "flows": names[alias],
            **_reachable(troubles[alias]),
            **_capabilities(rows.get(alias), roles[alias]),
        }
        for alias in sorted(roles)
    ]


def _reachable(troubles: Iterable[str | None]) -> dict[str, Any]:
    answered = [trouble for trouble in troubles if trouble is not None]
    if not answered:
        return {"reachable": None, "why": "It was not asked yet."}
    answers = "" in answered
    return {"reachable": answers, "why": "" if answers else answered[0]}


def _capabilities(row: ClusterCapabilities | None, roles: Iterable[Role]) -> dict[str, Any]:
    if row is None:
        return {"cluster_id": "", "product": "", "version": "", "lacks": None, "capabilities": [], "read_ms": None}
    product, _, version = row.product.rpartition(" ")
    has_version = bool(product) and version[:1].isdigit()
    own = [capability for capability in CAPABILITIES if capability.roles & frozenset(roles)]
    lacking = {capability.name: capability for capability in own if capability.name in row.lacks}
    others = [name for name in row.lacks if name not in lacking]
    lacks = [{"name": name, "costs": each.without, "cost": each.cost.value} for name, each in lacking.items()]
    return {
        "cluster_id": row.cluster_id,
        "product": product if has_version else row.product,
        "version": version if has_version else "",
        "lacks": [*lacks, *({"name": name, "costs": "", "cost": ""} for name in others)],
        "refuses": list(row.refuses),
        "capabilities": [
            {
                "name": capability.name,
                "can": capability.name not in row.lacks,
                "costs": capability.without if capability.name in row.lacks else "",
            }
            for capability in own
        ],
        "read_ms": row.at_ms,
    }
