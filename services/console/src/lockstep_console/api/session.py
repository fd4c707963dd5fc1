"""Who asks, what they may do, and which console answers."""

from lockstep_console.api.schemas import FLAG, NUMBER, TEXT, TEXTS, object_of, perhaps
from lockstep_console.console import VERSION
from lockstep_console.route import API, Answer, ConsoleRequest, Route
from lockstep_runtime.util.clock import now_ms


async def _show_session(request: ConsoleRequest) -> Answer:
    """Answer with the user, their rights, and the names of flows. It is open, so that a page can ask for a token."""
    session, identity = request.session, request.console.identity
    body = {
        "user": session.user,
        "may_read": session.may_read,
        "may_act": session.may_act,
        "read_only": not session.may_act,
        "why_read_only": session.why_read_only,
        "takes_token": request.console.access.policy.guarded,
        "version": VERSION,
        "at_ms": now_ms(),
    }
    if session.may_read:
        body |= {"file": str(identity.file), "instance": identity.instance, "flows": list(request.watches.names)}
    return request.json_answer(body)


SESSION = perhaps(
    object_of(
        user=TEXT,
        may_read=FLAG,
        may_act=FLAG,
        read_only=FLAG,
        why_read_only=TEXT,
        takes_token=FLAG,
        version=TEXT,
        at_ms=NUMBER,
    ),
    file=TEXT,
    instance=TEXT,
    flows=TEXTS,
)

ROUTES = (
    Route(
        "GET", f"{API}/session", _show_session, "Who asks, and what they may do", answers={200: SESSION}, is_open=True
    ),
)
