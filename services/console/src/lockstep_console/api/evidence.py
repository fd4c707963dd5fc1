"""The last switch of a flow with its evidence, and what verification has found."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lockstep_console.api.known_rows import known_rows
from lockstep_console.api.schemas import (
    FLAG,
    NUMBER,
    PERHAPS_NUMBER,
    PERHAPS_TEXT,
    TEXT,
    TEXTS,
    list_of,
    nullable,
    object_of,
    perhaps,
    schema_of,
)
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.json_text import json_text
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route
from lockstep_console.views.flow_body import verified_until
from lockstep_ops.switch.evidence import Evidence, collect_evidence
from lockstep_ops.switch.switch_steps import MEANINGS, step_states
from lockstep_ops.verify.verification_report import (
    BeyondCopy,
    FoundDifference,
    UnverifiedStretch,
    VerifiedTopic,
    build_verification,
)
from lockstep_runtime.http.answers import page
from lockstep_state.rows.state_rows import SWITCH_KEY, VERIFICATION_KEY, Row, Switch, Verification


async def _show_switch(request: ConsoleRequest) -> Answer:
    """Answer with the last switch as `lockstep switchover --status` shows it. `switch` is "" if there was none."""
    watch = request.flow
    rows, unknown = await known_rows(watch)
    evidence = _evidence(watch, rows)
    if evidence is None:
        return request.json_answer({"flow": watch.name, "switch": "", "phase": "", "plan_steps": [], **unknown})
    steps = [{"step": str(state.step), "meaning": MEANINGS[state.step]} for state in step_states(evidence.row)]
    return request.json_answer({**evidence.as_json(), "plan_steps": steps, **unknown})


async def _download_json(request: ConsoleRequest) -> Answer:
    """Answer with the evidence of the last switch as a file for programs."""
    evidence = await _required_evidence(request.flow)
    return _file(evidence, "json", "application/json", f"{json_text(evidence.as_json())}\n")


async def _download_markdown(request: ConsoleRequest) -> Answer:
    """Answer with the evidence of the last switch as a file for people."""
    evidence = await _required_evidence(request.flow)
    return _file(evidence, "md", "text/markdown", evidence.as_markdown())


def _evidence(watch: FlowWatch, rows: Mapping[str, Row]) -> Evidence | None:
    row = rows.get(SWITCH_KEY)
    return collect_evidence(row, watch.settings.flow, dict(rows)) if isinstance(row, Switch) else None


async def _required_evidence(watch: FlowWatch) -> Evidence:
    """Return the evidence of the last switch.

    Raises:
        RequestRefused: There is none, or it is not known.
    """
    rows, unknown = await known_rows(watch)
    evidence = _evidence(watch, rows)
    if evidence is not None:
        return evidence
    if unknown:
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "unknown", f"{unknown['unknown']}.")
    raise RequestRefused(HTTPStatus.NOT_FOUND, "no-switch", f"There was no switch of {watch.name}.")


def _file(evidence: Evidence, ending: str, content_type: str, text: str) -> Answer:
    name = f"{evidence.row.verb}-{evidence.flow.source}-{evidence.flow.target}-{evidence.row.id[:12]}.{ending}"
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    answer = page(HTTPStatus.OK, text.encode(), f"{content_type}; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{safe}"'
    return answer


async def _show_verification(request: ConsoleRequest) -> Answer:
    """Answer with what verification has found, as `lockstep verify report` shows it, and the last request."""
    watch = request.flow
    dated = await watch.report()
    rows, unknown = await known_rows(watch)
    report = build_verification(watch.settings.flow, rows)
    row = rows.get(VERIFICATION_KEY)
    asked = (
        {"id": row.id, "phase": row.phase, "depth": row.depth, "topics": list(row.topics), "since_ms": row.since_ms}
        if isinstance(row, Verification)
        else None
    )
    until_ms = None if dated.report is None else verified_until(dated.report.partitions, rows)
    return request.json_answer({**report.as_json(), "request": asked, "verified_until_ms": until_ms, **unknown})


SECONDS = {"type": ["number", "null"]}
STEP = object_of(step=TEXT, state=TEXT, began=PERHAPS_TEXT, ended=PERHAPS_TEXT, seconds=SECONDS, text=TEXT)
VERDICT = nullable(object_of(verified_to=NUMBER, depth=TEXT, differences=NUMBER, not_verified=NUMBER))
SWITCHED_PARTITION = object_of(
    partition=NUMBER,
    source_end=PERHAPS_NUMBER,
    copied_to=NUMBER,
    target_end=NUMBER,
    missing=PERHAPS_NUMBER,
    missing_since=PERHAPS_TEXT,
    known_until=PERHAPS_TEXT,
    verified=VERDICT,
)
SWITCHED_TOPIC = object_of(topic=TEXT, target_topic=TEXT, partitions=list_of(SWITCHED_PARTITION))
POSITION = object_of(topic=TEXT, partition=NUMBER, source_offset=NUMBER, target_offset=NUMBER)
SWITCHED_GROUP = object_of(
    group=TEXT, state=TEXT, text=TEXT, read_again=NUMBER, known_until=PERHAPS_TEXT, positions=list_of(POSITION)
)
EVIDENCE_LISTS = {"steps": list_of(STEP), "topics": list_of(SWITCHED_TOPIC), "groups": list_of(SWITCHED_GROUP)}
PLAN_STEP = object_of(step=TEXT, meaning=TEXT)
SWITCH = perhaps(
    object_of(flow=TEXT, switch=TEXT, phase=TEXT, plan_steps=list_of(PLAN_STEP)), **EVIDENCE_LISTS, unknown=TEXT
)
EVIDENCE = object_of(
    flow=TEXT,
    switch=TEXT,
    verb=TEXT,
    phase=TEXT,
    drill=FLAG,
    by=TEXT,
    began=PERHAPS_TEXT,
    ended=PERHAPS_TEXT,
    seconds=SECONDS,
    lost=PERHAPS_NUMBER,
    **EVIDENCE_LISTS,
)
REQUEST = object_of(id=TEXT, phase=TEXT, depth=TEXT, topics=TEXTS, since_ms=NUMBER)
VERIFICATION = perhaps(
    object_of(
        flow=TEXT,
        depth=TEXT,
        equal=FLAG,
        topics=list_of(schema_of(VerifiedTopic)),
        differences=list_of(schema_of(FoundDifference)),
        beyond=list_of(schema_of(BeyondCopy)),
        not_verified=list_of(schema_of(UnverifiedStretch)),
        waiting={"type": "object", "additionalProperties": TEXT},
        request=nullable(REQUEST),
        verified_until_ms=PERHAPS_NUMBER,
    ),
    unknown=TEXT,
)
PATH = f"{API}/flows/{{flow}}"
NO_SCHEMA: Mapping[str, Any] = {"type": "string"}

ROUTES = (
    Route("GET", f"{PATH}/switch", _show_switch, "The last switch and its steps", answers={200: SWITCH}),
    Route("GET", f"{PATH}/switch/evidence.json", _download_json, "The evidence of it", answers={200: EVIDENCE}),
    Route("GET", f"{PATH}/switch/evidence.md", _download_markdown, "The same as a page", answers={200: NO_SCHEMA}),
    Route("GET", f"{PATH}/verification", _show_verification, "What was compared", answers={200: VERIFICATION}),
)
