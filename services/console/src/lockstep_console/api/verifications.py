"""Verifications from the console, as `lockstep verify run` asks for them. What comes of one is in rows."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lockstep_console.actions.command_runner import CommandRunner, requests_for
from lockstep_console.api.commands import ACCEPTED, accepted, acting_user, field_of
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route, json_answer
from lockstep_ops.command_words import command_words
from lockstep_ops.exit_codes import CannotUse
from lockstep_state.commands.command_vocabulary import FLOW, VERIFY

DEPTHS = ("count", "crc", "bytes", "record")
"""How closely copies are compared, as `lockstep verify run --depth`."""

BODY = {
    "type": "object",
    "properties": {
        "topics": {"type": "array", "items": {"type": "string"}, "description": "Patterns of source topics."},
        "depth": {"enum": list(DEPTHS)},
        "max_bytes_per_s": {"type": "integer", "minimum": 0},
        "again": {"type": "boolean"},
        "dry_run": {"type": "boolean"},
    },
}


def verify_arguments(body: Mapping[str, Any], depth: str) -> dict[str, Any]:
    """Return the arguments of the command. Pure.

    Args:
        body: The request's body.
        depth: The depth if the body names none.

    Raises:
        RequestRefused: The body does not fit.
    """
    topics = field_of(body, "topics", list, [])
    if not all(isinstance(topic, str) and topic for topic in topics):
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", "topics in the body is no list of texts.")
    depth = field_of(body, "depth", str, depth)
    rate = field_of(body, "max_bytes_per_s", int, 0)
    if depth not in DEPTHS or rate < 0:
        raise RequestRefused(
            HTTPStatus.BAD_REQUEST,
            "bad-body",
            f"depth is one of {', '.join(DEPTHS)}, and max_bytes_per_s is not negative.",
        )
    return {
        "depth": depth,
        "topics": list(topics),
        "max_bytes_per_s": rate,
        "again": field_of(body, "again", bool, False),
    }


async def _post_verification(request: ConsoleRequest) -> Answer:
    """Ask the data plane to compare copies with their source, or say what that does."""
    watch, body = request.flow, await request.json()
    arguments = verify_arguments(body, watch.settings.data_plane.verify.depth)
    by = acting_user(request.session)
    try:
        if field_of(body, "dry_run", bool, False):
            return json_answer(_dry_run(watch, arguments, by))
        return accepted(request.console.part(CommandRunner).ask(watch, VERIFY, FLOW, by, arguments))
    except CannotUse as exc:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "cannot-use", f"{exc}.") from exc


def _dry_run(watch: FlowWatch, arguments: Mapping[str, Any], by: str) -> dict[str, Any]:
    asked = requests_for(watch, VERIFY, FLOW, by, arguments)
    words = command_words(watch.settings.flow, VERIFY, FLOW).as_json()
    services = sorted({name for question in asked for name in question.services})
    return {
        "dry_run": True,
        "flow": watch.name,
        "verb": VERIFY,
        "arguments": dict(arguments),
        **words,
        "asked": services,
    }


ROUTES = (
    Route(
        "POST",
        f"{API}/flows/{{flow}}/verifications",
        _post_verification,
        "Compare copies with their source now. The rows of the verification show what comes of it.",
        body=BODY,
        answers={200: {"type": "object"}, 202: ACCEPTED},
    ),
)
