"""Changes as they come."""

import asyncio
from http import HTTPStatus

from lockstep_console.changes import ChangeStream
from lockstep_console.route import API, Answer, ConsoleRequest, Parameter, RequestRefused, Route
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_runtime.http.stream import AnswerStream
from lockstep_state.rows.state_rows import ROWS

MOST_WORST = 200

ADMITTED_AGAIN_S = 10.0
"""The seconds after which it is checked that a client may still read: the token in the file may be another one."""


async def _send_changes(request: ConsoleRequest) -> Answer:
    """Answer with server-sent events until the client goes away."""
    named = request.raw.query.getall("flow", [])
    watches = [request.find_flow(name) for name in dict.fromkeys(named)] or request.watches.all
    lag_of = [request.find_flow(name).name for name in request.raw.query.getall("lag", [])]
    worst = request.number("worst", 0, most=MOST_WORST)
    changes = ChangeStream(watches, request.names("rows", ROWS), worst, lag_of)
    answer = await AnswerStream.open(request.raw)
    if answer is None:
        raise RequestRefused(
            HTTPStatus.SERVICE_UNAVAILABLE, "too-many-streams", "Too many pages are open: close one, or wait."
        )
    sending = asyncio.ensure_future(changes.send_all(answer, request.console.changes))
    try:
        while not sending.done() and request.may_still_read:
            await asyncio.wait({sending}, timeout=ADMITTED_AGAIN_S)
        if sending.done():
            sending.result()
    finally:
        await cancelled([sending])
    return answer.answer


ROUTES = (
    Route(
        "GET",
        f"{API}/changes",
        _send_changes,
        "Changes as they come, as server-sent events",
        query=(
            Parameter("flow", "Only this flow; repeat for more. Default: all"),
            Parameter("rows", "Kinds of rows that are sent, such as switch,verify"),
            Parameter("lag", "Also what is new in the history of the lag of this flow; repeat for more"),
            Parameter("worst", "So many of the worst partitions of each flow", "integer", default=0, most=MOST_WORST),
        ),
        answers={200: {"type": "string", "contentMediaType": "text/event-stream"}},
        streams=True,
    ),
)
