"""Consumer groups as readiness for a switch, with their members on the target."""

from collections.abc import Mapping, Sequence

from lockstep_console.api.flows import list_answer, list_head
from lockstep_console.api.known_rows import known_rows
from lockstep_console.api.schemas import (
    NUMBER,
    TEXT,
    TEXTS,
    line_schema,
    list_of,
    nullable,
    object_of,
    perhaps,
    with_members,
)
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, Route
from lockstep_console.views.group_body import group_body, group_page
from lockstep_console.views.listing import LIST_PARAMETERS, ListQuery
from lockstep_kafka.common.asyncio_util import done_within
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.status.report import GroupLine
from lockstep_state.rows.state_rows import GroupStatus

READ_WITHIN_S = 30.0
"""The seconds that the answer may take: the first report is waited for, and then the members."""

MEMBERS_WITHIN_S = 3.0
"""The seconds within which the target has to say who is in the groups. Otherwise that is unknown."""

MOST_DESCRIBED = 50
"""Groups of an answer whose members are asked for: each is a request."""


async def _show_groups(request: ConsoleRequest) -> Answer:
    """Answer with a part of a flow's groups."""
    watch, query = request.flow, ListQuery.of(request)
    dated = await watch.report()
    page = group_page(() if dated.report is None else dated.report.groups, query)
    rows, _ = await known_rows(watch)
    members = await _read_members(watch, [line.group for line in page.lines])
    bodies = []
    for line in page.lines:
        row = rows.get(f"{GroupStatus.kind}/{line.group}")
        bodies.append(group_body(line, row if isinstance(row, GroupStatus) else None, members.get(line.group)))
    head = list_head(watch)
    return request.json_answer(head | {"total": page.total, "matching": page.matching, "groups": bodies})


async def _read_members(watch: FlowWatch, groups: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return client ids and hosts of the members on the target, by group. Those of an absent group are unknown."""
    if not groups:
        return {}
    try:
        described = await done_within(watch.clients.target.describe_groups(groups[:MOST_DESCRIBED]), MEMBERS_WITHIN_S)
    except (ClusterError, TimeoutError):  # shown as unknown
        return {}
    return {name: group.member_names for name, group in described.done.items()}


PLACE = perhaps(
    object_of(partition=NUMBER, place=TEXT),
    upstream=NUMBER,
    downstream=NUMBER,
    records=NUMBER,
    why=TEXT,
    on_target=NUMBER,
)
GROUP_TOPIC = object_of(
    topic=TEXT,
    place=TEXT,
    exact=NUMBER,
    behind=NUMBER,
    waiting=NUMBER,
    ahead=NUMBER,
    records=NUMBER,
    why=TEXT,
    partitions=list_of(PLACE),
)
GROUP = with_members(line_schema(GroupLine), readiness=TEXT, topics=list_of(GROUP_TOPIC), members=nullable(TEXTS))

ROUTES = (
    Route(
        "GET",
        f"{API}/flows/{{flow}}/groups",
        _show_groups,
        "A part of the consumer groups, with topics, and members on the target",
        query=LIST_PARAMETERS,
        answers={200: list_answer("groups", GROUP)},
        answered_within_s=READ_WITHIN_S,
    ),
)
