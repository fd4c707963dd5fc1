"""Flows, their topics and partitions, and what waits for a decision."""

import asyncio
from typing import Any

from lockstep_console.api.schemas import (
    FLAG,
    NUMBER,
    NUMBERS,
    OBJECT,
    PERHAPS_NUMBER,
    TEXT,
    Schema,
    line_schema,
    list_of,
    object_of,
    perhaps,
    schema_of,
    with_members,
)
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, Parameter, Route, text_answer
from lockstep_console.views.listing import LIST_PARAMETERS, ListQuery, partition_page, topic_page
from lockstep_ops.status.report import (
    GroupLine,
    PartitionLine,
    PausedPart,
    ServiceLine,
    SlotLine,
    TopicLine,
    Trouble,
)
from lockstep_ops.status.report_json import SECTIONS, line_as_json
from lockstep_runtime.util.clock import now_ms


async def _show_flows(request: ConsoleRequest) -> Answer:
    """Answer with all flows, without the sections of their reports."""
    await read_all(request)
    shown = ",".join(watch.shown().text for watch in request.watches.all)
    return request.compressed(text_answer(f'{{"at_ms":{now_ms()},"flows":[{shown}]}}'))


async def _show_flow(request: ConsoleRequest) -> Answer:
    """Answer with one flow and sections of its report."""
    watch, sections = request.flow, request.names("sections", SECTIONS)
    await watch.report()
    return request.compressed(text_answer(await watch.text(sections)))


async def _show_partitions(request: ConsoleRequest) -> Answer:
    """Answer with a part of a flow's partitions."""
    watch, query = request.flow, ListQuery.of(request)
    dated = await watch.report()
    page = partition_page(() if dated.report is None else dated.report.partitions, query)
    bodies = watch.partition_bodies(page.lines) if page.lines else []
    return request.json_answer(
        list_head(watch) | {"total": page.total, "matching": page.matching, "partitions": bodies}
    )


async def _show_topics(request: ConsoleRequest) -> Answer:
    """Answer with a part of a flow's topics."""
    watch, query = request.flow, ListQuery.of(request)
    dated = await watch.report()
    page = topic_page(() if dated.report is None else dated.report.topics, query)
    return request.json_answer(list_head(watch) | page.as_json("topics", line_as_json))


async def _show_decisions(request: ConsoleRequest) -> Answer:
    """Answer with what waits for a decision in any flow."""
    await read_all(request)
    bodies = [watch.body() for watch in request.watches.all]
    waiting = [decision for body in bodies for decision in body["decisions"]]
    left_out = sum(body.get("decisions_left_out", 0) for body in bodies)
    return request.json_answer({"at_ms": now_ms(), "decisions": waiting, "left_out": left_out})


async def read_all(request: ConsoleRequest) -> None:
    """Have the reports of all flows read again soon, and wait for the first ones."""
    await asyncio.gather(*(watch.report() for watch in request.watches.all))


def list_head(watch: FlowWatch) -> dict[str, Any]:
    """Return the fields of every list: when it was read, and why nothing is known, if so."""
    body: dict[str, Any] = {"at_ms": watch.dated.at_ms}
    return {**body, "unknown": watch.unknown_reason} if watch.unknown_reason else body


CHOICE = object_of(
    verb=TEXT, subject=TEXT, arguments=OBJECT, line=TEXT, label=TEXT, does=TEXT, loses=TEXT, confirm=TEXT
)
DECISION = object_of(
    flow=TEXT,
    kind=TEXT,
    subject=TEXT,
    since_ms=NUMBER,
    case=TEXT,
    code=TEXT,
    sentence=TEXT,
    range={"type": "object", "additionalProperties": NUMBER},
    choices=list_of(CHOICE),
)
BLOCKER = object_of(reason=TEXT, subject=TEXT, text=TEXT, blocks=FLAG, cause=OBJECT, details=OBJECT)
HISTORY = object_of(worst_ms=PERHAPS_NUMBER, worst_at_ms=PERHAPS_NUMBER, known_s=NUMBER)
PARTITION = with_members(line_schema(PartitionLine), copied_to=NUMBER, verified_until_ms=PERHAPS_NUMBER, spark=NUMBERS)
TOPIC = line_schema(TopicLine)
FLOW = perhaps(
    object_of(
        flow=TEXT,
        source=TEXT,
        target=TEXT,
        at_ms=NUMBER,
        fine=FLAG,
        sentence=TEXT,
        switch_ready={"type": ["boolean", "null"]},
        switch_blockers=list_of(BLOCKER),
        history=HISTORY,
        verified_until_ms=PERHAPS_NUMBER,
        decisions=list_of(DECISION),
    ),
    unknown=TEXT,
    known_ms=PERHAPS_NUMBER,
    lag_ms=PERHAPS_NUMBER,
    lag_records=PERHAPS_NUMBER,
    lag_at_least=NUMBER,
    lag_unknown=NUMBER,
    switch_blockers_left_out=NUMBER,
    decisions_left_out=NUMBER,
    troubles=list_of(schema_of(Trouble)),
    troubles_left_out=NUMBER,
    held_back=list_of(schema_of(PausedPart)),
    services=list_of(line_schema(ServiceLine)),
    slots=list_of(line_schema(SlotLine)),
    topics=list_of(TOPIC),
    partitions=list_of(line_schema(PartitionLine)),
    groups=list_of(line_schema(GroupLine)),
)


def list_answer(field: str, item: Schema) -> Schema:
    """Return the schema of a part of a list (`list_head`), with its lines in `field`."""
    return perhaps(object_of(at_ms=NUMBER, total=NUMBER, matching=NUMBER, **{field: list_of(item)}), unknown=TEXT)


FLOWS = object_of(at_ms=NUMBER, flows=list_of(FLOW))
DECISIONS = object_of(at_ms=NUMBER, decisions=list_of(DECISION), left_out=NUMBER)
SECTIONS_PARAMETER = Parameter("sections", f"Sections of the report, of {', '.join(SECTIONS)}, separated by commas")

ROUTES = (
    Route("GET", f"{API}/flows", _show_flows, "All flows", answers={200: FLOWS}),
    Route(
        "GET",
        f"{API}/flows/{{flow}}",
        _show_flow,
        "One flow, with sections of its report",
        query=(SECTIONS_PARAMETER,),
        answers={200: FLOW},
    ),
    Route(
        "GET",
        f"{API}/flows/{{flow}}/partitions",
        _show_partitions,
        "Partitions of a flow, page by page",
        query=LIST_PARAMETERS,
        answers={200: list_answer("partitions", PARTITION)},
    ),
    Route(
        "GET",
        f"{API}/flows/{{flow}}/topics",
        _show_topics,
        "Topics of a flow, page by page",
        query=LIST_PARAMETERS,
        answers={200: list_answer("topics", TOPIC)},
    ),
    Route("GET", f"{API}/decisions", _show_decisions, "What waits for a decision", answers={200: DECISIONS}),
)
