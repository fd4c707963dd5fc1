"""Commands from the console: pause, resume, stop, restart, refresh, sync-groups, and decisions about a partition."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lockstep_console.access import BY_TOKEN, Session
from lockstep_console.actions.command_outcome import PHASES, CommandOutcome
from lockstep_console.actions.command_runner import CommandRunner, requests_for, unfinished_decision
from lockstep_console.actions.decision_runner import DecisionRunner, find_partition
from lockstep_console.actions.switch_runner import switch_outcome
from lockstep_console.api.schemas import FLAG, NUMBER, OBJECT, TEXT, TEXTS, list_of, object_of
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, NOTHING, Answer, ConsoleRequest, RequestRefused, Route, json_answer
from lockstep_ops.command_request import command_scope
from lockstep_ops.command_words import BY_CLICK, choice_words, command_words
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.halt_choices import DECISIONS, CannotDecide, choose, halt_choices, offsets_request
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.value_types import LARGEST_COUNT

UNNAMED_USER = "console token"
"""The name of who acts with the token, if no proxy names the user."""

ANSWER = object_of(verb=TEXT, service=TEXT, kind=TEXT, at_ms=NUMBER, detail=OBJECT)
COMMAND = object_of(flow=TEXT, verb=TEXT, subject=TEXT, id=TEXT, missing=TEXTS, trouble=TEXT, lines=TEXTS)
OUTCOME = object_of(
    id=TEXT,
    flow=TEXT,
    verb=TEXT,
    subject=TEXT,
    arguments=OBJECT,
    by=TEXT,
    at_ms=NUMBER,
    phase={"enum": list(PHASES)},
    sentence=TEXT,
    answers=list_of(ANSWER),
    missing=TEXTS,
    trouble=TEXT,
    steps=list_of(COMMAND),
)
ACCEPTED = object_of(id=TEXT, sentence=TEXT)
DRY_RUN = object_of(
    dry_run=FLAG,
    flow=TEXT,
    verb=TEXT,
    subject=TEXT,
    arguments=OBJECT,
    label=TEXT,
    does=TEXT,
    loses=TEXT,
    confirm=TEXT,
    asked=TEXTS,
)
BODY = {
    "type": "object",
    "required": ["verb"],
    "properties": {
        "verb": {"enum": [*BY_CLICK, *DECISIONS]},
        "subject": {"type": "string", "description": "flow, connector:NAME, slot:N, topic:T or partition:T-N"},
        "arguments": {
            "type": "object",
            "properties": {"offset": {"type": "integer", "description": "The source offset to go on at."}},
        },
        "dry_run": {"type": "boolean"},
    },
}


def acting_user(session: Session) -> str:
    """Return the name of who acts, as commands and events have it."""
    return UNNAMED_USER if session.user == BY_TOKEN else session.user


def accepted(outcome: CommandOutcome) -> Answer:
    """Return the answer to a request that is carried out in the background."""
    return json_answer({"id": outcome.id, "sentence": outcome.sentence}, HTTPStatus.ACCEPTED)


def field_of(body: Mapping[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    """Return a field of a request's body.

    Raises:
        RequestRefused: It has another type, or is a number of more than 64 bits.
    """
    value = body.get(name, default)
    if value is not default and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", f"{name} in the body is no {kind.__name__}.")
    if isinstance(value, int) and abs(value) > LARGEST_COUNT:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", f"{name} in the body has more than 64 bits.")
    return value


def texts_of(body: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts in a request's body; [] if it is not there.

    Raises:
        RequestRefused: It has another type, or a part that is empty or no text.
    """
    values = field_of(body, name, list, [])
    if not all(isinstance(value, str) and value for value in values):
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", f"{name} in the body is no list of texts.")
    return list(values)


async def _post_command(request: ConsoleRequest) -> Answer:
    """Ask the services of a flow for something, or say what that would do."""
    watch, body = request.flow, await request.json()
    verb, dry_run = field_of(body, "verb", str, ""), field_of(body, "dry_run", bool, False)
    arguments = field_of(body, "arguments", dict, {})
    try:
        scope = command_scope(field_of(body, "subject", str, "flow"))
        if verb in DECISIONS:
            return _decide(request, watch, verb, scope, arguments, dry_run=dry_run)
        if verb not in BY_CLICK:
            verbs = [*BY_CLICK, *DECISIONS]
            raise RequestRefused(
                HTTPStatus.BAD_REQUEST,
                "unknown-verb",
                f"The console knows no command {verb[:40]!r}. It knows {', '.join(verbs)}.",
                verbs=verbs,
            )
        if arguments:
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", f"{verb} takes no arguments.")
        by = acting_user(request.session)
        if dry_run:
            return json_answer({"subject": str(scope), **dry_run_of(watch, verb, scope, by)})
        return accepted(request.console.part(CommandRunner).ask(watch, verb, scope, by))
    except CannotUse as exc:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "cannot-use", f"{exc}.") from exc
    except CannotDecide as exc:
        line = {"line": exc.line} if exc.line else {}
        raise RequestRefused(HTTPStatus.CONFLICT, "cannot-decide", str(exc), **line) from exc
    except NewerVersion as exc:
        raise RequestRefused(HTTPStatus.CONFLICT, "newer-version", f"{exc}.") from exc


def _decide(
    request: ConsoleRequest, watch: FlowWatch, verb: str, scope: Scope, arguments: Mapping[str, Any], *, dry_run: bool
) -> Answer:
    """Decide about a halted partition.

    Raises:
        CannotDecide: No command does.
    """
    flow, row = watch.settings.flow, find_partition(watch, scope)
    offset = field_of(arguments, "offset", int, None)
    if dry_run:
        lines = [choice for choice in halt_choices(flow, row) if choice.verb == verb and choice.line]
        choice = lines[0] if lines else choose(flow, row, verb, offset)
        if not choice.line:
            offsets_request(watch.settings, row, choice)
        words = choice_words(flow, row, choice).as_json()
        given = {"offset": choice.begin} if choice.begin >= 0 else {}
        services = [] if choice.line else ["data-plane", "topic-sync"]
        line = {"line": choice.line} if choice.line else {}
        body = _dry_run_body(watch, verb, given, words, services)
        return json_answer({"subject": str(scope), **body, **line})
    choice = choose(flow, row, verb, offset)
    runner = request.console.part(DecisionRunner)
    return accepted(runner.decide(watch, row, choice, verb, acting_user(request.session)))


def dry_run_of(
    watch: FlowWatch, verb: str, scope: Scope, by: str, arguments: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """Return what a command of the services would do, as JSON values. Raises as `requests_for`."""
    asked = requests_for(watch, verb, scope, by, arguments)
    services = sorted({name for question in asked for name in question.services})
    words = command_words(watch.settings.flow, verb, scope).as_json()
    return _dry_run_body(watch, verb, arguments, words, services)


def _dry_run_body(
    watch: FlowWatch, verb: str, arguments: Mapping[str, Any], words: Mapping[str, Any], services: list[str]
) -> dict[str, Any]:
    return {
        "dry_run": True,
        "flow": watch.name,
        "verb": verb,
        "arguments": dict(arguments),
        **words,
        "asked": services,
    }


async def _get_command(request: ConsoleRequest) -> Answer:
    """Return the outcome of a command."""
    watch, asked_id = request.flow, request.path.get("id", "")
    await watch.rows.wait_read()
    await watch.watched_events.wait_read()
    outcome = request.console.part(CommandRunner).find(watch, asked_id)
    if outcome is None:
        outcome = switch_outcome(request.watches.both_ways(watch), watch.name, asked_id)
    if outcome is None:
        raise RequestRefused(
            HTTPStatus.NOT_FOUND,
            "unknown-command",
            f"Neither this console nor the last events of {watch.name} know a command {asked_id[:60]!r}. Services keep "
            "a command for seven days, and answer it when they are there.",
        )
    return json_answer(outcome.as_json())


async def _get_commands(request: ConsoleRequest) -> Answer:
    """Return the last outcomes of a flow, newest first. A decision that a dead console left unfinished is the first."""
    watch, runner = request.flow, request.console.part(CommandRunner)
    await watch.rows.wait_read()
    await watch.watched_events.wait_read()
    outcomes = runner.outcomes.of_flow(watch.name)
    unfinished = unfinished_decision(watch)
    if unfinished is not None and runner.outcomes.get(watch.name, unfinished.id) is None:
        outcome = runner.find(watch, unfinished.id)
        outcomes = [outcome, *outcomes] if outcome is not None else outcomes
    return request.json_answer({"flow": watch.name, "commands": [outcome.as_json() for outcome in outcomes]})


ROUTES = (
    Route(
        "POST",
        f"{API}/flows/{{flow}}/commands",
        _post_command,
        "Ask the services of a flow for something. With dry_run: say what it does and loses.",
        body=BODY,
        answers={200: DRY_RUN, 202: ACCEPTED},
    ),
    Route(
        "GET",
        f"{API}/flows/{{flow}}/commands",
        _get_commands,
        "The last commands of this console and their outcomes, newest first.",
        answers={200: object_of(flow=TEXT, commands=list_of(OUTCOME))},
    ),
    Route(
        "GET",
        f"{API}/flows/{{flow}}/commands/{{id}}",
        _get_command,
        "The outcome of a command: the answers of services, and who has not answered.",
        answers={200: OUTCOME},
    ),
)
