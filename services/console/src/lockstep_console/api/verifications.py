"""Verifications from the console, as `lockstep verify run` asks for them. What comes of one is in rows."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lockstep_console.actions.command_runner import CommandRunner
from lockstep_console.api.commands import ACCEPTED, DRY_RUN, accepted, acting_user, dry_run_of, field_of, texts_of
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route, json_answer
from lockstep_ops.exit_codes import CannotUse
from lockstep_state.commands.command_vocabulary import FLOW, VERIFY, VERIFY_DEPTHS
from lockstep_state.rows.value_types import LARGEST_COUNT

BODY = {
    "type": "object",
    "properties": {
        "topics": {"type": "array", "items": {"type": "string"}, "description": "Patterns of source topics."},
        "depth": {"enum": list(VERIFY_DEPTHS)},
        "max_bytes_per_s": {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT},
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
    topics = texts_of(body, "topics")
    depth = field_of(body, "depth", str, depth)
    rate = field_of(body, "max_bytes_per_s", int, 0)
    if depth not in VERIFY_DEPTHS or not 0 <= rate <= LARGEST_COUNT:
        raise RequestRefused(
            HTTPStatus.BAD_REQUEST,
            "bad-body",
            f"depth is one of {', '.join(VERIFY_DEPTHS)}, and max_bytes_per_s is from 0 to {LARGEST_COUNT}.",
        )
    return {
        "depth": depth,
        "topics": topics,
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
            return json_answer({"subject": str(FLOW), **dry_run_of(watch, VERIFY, FLOW, by, arguments)})
        return accepted(request.console.part(CommandRunner).ask(watch, VERIFY, FLOW, by, arguments))
    except CannotUse as exc:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "cannot-use", f"{exc}.") from exc


ROUTES = (
    Route(
        "POST",
        f"{API}/flows/{{flow}}/verifications",
        _post_verification,
        "Compare copies with their source now. The rows of the verification show what comes of it.",
        body=BODY,
        answers={200: DRY_RUN, 202: ACCEPTED},
    ),
)
