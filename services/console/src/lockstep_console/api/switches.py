"""Switches from the console: switchover, failover, failback and drills."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from lockstep_config.text.values import BadValue, moment
from lockstep_console.actions.switch_runner import SwitchRunner, find_switch
from lockstep_console.api.commands import ACCEPTED, accepted, acting_user, field_of, texts_of
from lockstep_console.api.schemas import FLAG, OBJECT, PERHAPS_TEXT, TEXT, TEXTS, list_of, object_of, perhaps
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route, json_answer
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.command_words import switch_words
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_steps import UNDER_WAY, Verb
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Switch

PLANNED_WITHIN_S = 60.0
"""The seconds within which a plan has to be made. It asks both clusters one thing after another."""

ALLOW = {
    "type": "array",
    "items": {"enum": [str(allowance) for allowance in Allowance]},
    "description": "What the switch does although it refuses it otherwise (GET /switch-allowances).",
}
MORE = {
    "allow": ALLOW,
    "allowed_loss": {"type": "integer", "minimum": 0, "description": "Records that a failover may lose."},
    "diverged": {"enum": ["", "copy", "leave"]},
    "rewind_groups": {"type": "boolean"},
}
BODY = {
    "type": "object",
    "required": ["verb"],
    "properties": {
        "verb": {"enum": [str(verb) for verb in Verb]},
        "drill": {"type": "boolean"},
        "topics": {"type": "array", "items": {"type": "string"}},
        "cutoff": {"type": "string", "description": "now, RFC 3339, or Unix milliseconds"},
        "dry_run": {"type": "boolean"},
        **MORE,
    },
}

REFUSAL = perhaps(object_of(code=TEXT, text=TEXT, details=OBJECT), subject=TEXT, cause=OBJECT)
SWITCH_PLAN = perhaps(
    object_of(flow=TEXT, verb=TEXT, dry_run=FLAG, topics=TEXTS, label=TEXT, does=TEXT, loses=TEXT, confirm=TEXT),
    refusals=list_of(REFUSAL),
    steps=list_of(object_of(step=TEXT, meaning=TEXT)),
    notes=TEXTS,
    source_known_until=PERHAPS_TEXT,
    groups_known_until=PERHAPS_TEXT,
    unknown=TEXT,
)


def switch_options(body: Mapping[str, Any], by: str, at_ms: int) -> SwitchOptions:
    """Return the options in a request's body. Pure.

    Args:
        body: The body.
        by: Who asks.
        at_ms: Now, in Unix milliseconds.

    Raises:
        RequestRefused: They are none, or do not fit together.
    """
    try:
        verb = Verb(field_of(body, "verb", str, ""))
    except ValueError:
        verbs = ", ".join(Verb)
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "unknown-verb", f"verb is one of {verbs}.") from None
    cutoff = field_of(body, "cutoff", str, "")
    diverged = field_of(body, "diverged", str, "")
    topics = tuple(texts_of(body, "topics"))
    allows = frozenset(_allowance(name) for name in texts_of(body, "allow"))
    allowed_loss = field_of(body, "allowed_loss", int, -1)
    if verb is Verb.FAILOVER and cutoff:
        raise _misfit("cutoff needs the source, which a failover does without")
    if verb is not Verb.FAILOVER and allowed_loss >= 0:
        raise _misfit("allowed_loss is for a failover only")
    for allowance in allows:
        if verb not in allowance.verbs:
            verbs = " and a ".join(each for each in Verb if each in allowance.verbs)
            raise _misfit(f"{allowance} is for a {verbs} only")
    if diverged not in ("", "copy", "leave") or (diverged and verb is not Verb.FAILBACK):
        raise _misfit("diverged is copy or leave, and for a failback only")
    if diverged == "leave" and topics:
        raise _misfit("diverged=leave alters offsets, and the flow has to be stopped for that: leave out topics")
    return SwitchOptions(
        verb=verb,
        topics=topics,
        cutoff_ms=_cutoff_ms(cutoff, at_ms),
        drill=field_of(body, "drill", bool, False),
        rewind_groups=field_of(body, "rewind_groups", bool, False),
        diverged=diverged,
        allowed_loss=allowed_loss,
        allows=allows,
        by=by,
    )


def _misfit(sentence: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.BAD_REQUEST, "cannot-use", f"{sentence[0].upper()}{sentence[1:]}.")


def _allowance(name: str) -> Allowance:
    try:
        return Allowance(name)
    except ValueError:
        raise _misfit(f"allow has parts of {', '.join(Allowance)}, and {name[:40]!r} is none") from None


def _cutoff_ms(text: str, at_ms: int) -> int:
    if text in ("", "now"):
        return at_ms if text else 0
    try:
        return moment(text) or 0
    except BadValue as exc:
        raise _misfit(f"cutoff {text[:40]} {exc}") from exc


async def _post_switch(request: ConsoleRequest) -> Answer:
    """Begin a switch, or return its plan with what speaks against it."""
    watch, body = request.flow, await request.json()
    options = switch_options(body, acting_user(request.session), now_ms())
    runner = request.console.part(SwitchRunner)
    try:
        if not field_of(body, "dry_run", bool, False):
            return accepted(runner.begin(watch, options))
        moving, _ = runner.flows(watch, options.verb)
        words = {"dry_run": True, "topics": list(options.topics), **switch_words(moving.flow, options).as_json()}
        try:
            plan = await runner.plan(watch, options)
        except (ClusterError, NewerVersion) as exc:
            return json_answer({"flow": str(moving.flow), "verb": str(options.verb), "unknown": f"{exc}.", **words})
        return request.json_answer({**plan, **words})
    except CannotUse as exc:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "cannot-use", f"{exc}.") from exc


def _under_way(request: ConsoleRequest, body: Mapping[str, Any]) -> tuple[FlowWatch, Switch, SwitchOptions]:
    """Return the switch of the path, the watch over the flow of its row, and what is allowed beyond it.

    Raises:
        RequestRefused: The flow and its opposite have no such switch, or it has ended.
    """
    watch, switch_id = request.flow, request.path.get("id", "")
    present = find_switch(request.watches.both_ways(watch), switch_id)
    if present is None:
        raise RequestRefused(
            HTTPStatus.NOT_FOUND, "unknown-switch", f"The last switch of {watch.name} is not {switch_id[:60]!r}."
        )
    owner, row = present
    if row.phase not in UNDER_WAY:
        raise RequestRefused(HTTPStatus.CONFLICT, "switch-ended", f"The {row.verb} is {row.phase} already.")
    asked = switch_options({**body, "verb": row.verb}, acting_user(request.session), now_ms())
    # What the row of the switch says stays so, whatever the body has of it.
    return owner, row, replace(asked, id=row.id, topics=(), cutoff_ms=0, drill=False)


async def _post_continue(request: ConsoleRequest) -> Answer:
    """Continue a switch that is under way, also one that a terminal has begun."""
    watch, row, options = _under_way(request, await request.json())
    return accepted(request.console.part(SwitchRunner).go_on(watch, row, options))


async def _post_abort(request: ConsoleRequest) -> Answer:
    """Take back a switch that is under way, where that is possible."""
    body = await request.json()
    watch, row, options = _under_way(request, {"allow": texts_of(body, "allow")})
    return accepted(request.console.part(SwitchRunner).abort(watch, row, options))


async def _show_allowances(request: ConsoleRequest) -> Answer:
    """Answer with what a switch refuses unless it is allowed, in the words of the command line."""
    allowances = [
        {"name": allowance, "meaning": allowance.meaning, "verbs": [verb for verb in Verb if verb in allowance.verbs]}
        for allowance in Allowance
    ]
    return request.json_answer({"allowances": allowances})


ALLOWANCES = object_of(allowances=list_of(object_of(name=TEXT, meaning=TEXT, verbs=TEXTS)))

ROUTES = (
    Route(
        "GET",
        f"{API}/switch-allowances",
        _show_allowances,
        "What a switch refuses unless it is allowed, as the command line says it",
        answers={200: ALLOWANCES},
    ),
    Route(
        "POST",
        f"{API}/flows/{{flow}}/switches",
        _post_switch,
        "Begin a switchover, failover, failback or drill. With dry_run: its plan, and what it does and loses.",
        body=BODY,
        answers={200: SWITCH_PLAN, 202: ACCEPTED},
        answered_within_s=PLANNED_WITHIN_S,
    ),
    Route(
        "POST",
        f"{API}/flows/{{flow}}/switches/{{id}}/continue",
        _post_continue,
        "Continue a switch that is under way, in this console.",
        body={"type": "object", "properties": MORE},
        answers={202: ACCEPTED},
    ),
    Route(
        "POST",
        f"{API}/flows/{{flow}}/switches/{{id}}/abort",
        _post_abort,
        "Take back a switch that is under way, where that is possible.",
        body={"type": "object", "properties": {"allow": ALLOW}},
        answers={202: ACCEPTED},
    ),
)
