"""The clusters of all flows: what each can do, and what it costs that it cannot do something."""

from lockstep_console.api.flows import read_all
from lockstep_console.api.known_rows import known_rows
from lockstep_console.api.schemas import NUMBER, TEXT, TEXTS, object_of
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, Route
from lockstep_console.views.cluster_body import FlowClusters, cluster_bodies
from lockstep_runtime.util.clock import now_ms


async def _show_clusters(request: ConsoleRequest) -> Answer:
    """Answer with each cluster once."""
    await read_all(request)
    bodies = cluster_bodies([await _clusters_of(watch) for watch in request.watches.all])
    return request.json_answer({"at_ms": now_ms(), "clusters": bodies})


async def _clusters_of(watch: FlowWatch) -> FlowClusters:
    flow, was_read = watch.settings.flow, watch.dated.at_ms > 0
    troubles = {alias: watch.away.get(alias, "") if was_read else None for alias in (flow.source, flow.target)}
    rows, _ = await known_rows(watch)
    return FlowClusters(flow, rows, troubles)


CLUSTER = object_of(
    alias=TEXT,
    flows=TEXTS,
    reachable={"type": ["boolean", "null"]},
    why=TEXT,
    cluster_id=TEXT,
    product=TEXT,
    version=TEXT,
    lacks={"type": ["array", "null"], "items": object_of(name=TEXT, costs=TEXT, cost=TEXT)},
    capabilities={"type": "array", "items": object_of(name=TEXT, can={"type": "boolean"}, costs=TEXT)},
    read_ms={"type": ["integer", "null"]},
)
CLUSTERS = object_of(at_ms=NUMBER, clusters={"type": "array", "items": CLUSTER})

ROUTES = (
    Route("GET", f"{API}/clusters", _show_clusters, "What each cluster can and cannot do", answers={200: CLUSTERS}),
)
