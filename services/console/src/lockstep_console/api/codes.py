"""What the codes mean that the console shows, and what to do: the texts of `lockstep explain`, without any cluster."""

from http import HTTPStatus

from lockstep_console.api.schemas import TEXT, list_of, object_of, perhaps
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route


async def _show_codes(request: ConsoleRequest) -> Answer:
    """Answer with each code of this release in a line."""
    # The texts hold 1.5 MiB, and most consoles are never asked for a code.
    from lockstep_ops.findings.alerts import AlertKind
    from lockstep_ops.findings.catalogue import FINDINGS

    # The title of an alert is its expression, which says nothing to somebody who looks for a word.
    codes = [
        {
            "code": kind.code,
            "kind": kind.FAMILY,
            "severity": kind.severity,
            "title": kind.texts["meaning" if isinstance(kind, AlertKind) else "title"],
        }
        for kind in FINDINGS
    ]
    return request.json_answer({"codes": codes})


async def _show_code(request: ConsoleRequest) -> Answer:
    """Answer with what a code means. Two kinds may have the same one."""
    from lockstep_ops.findings.catalogue import find, nearest

    code = request.path["code"]
    kinds = find(code)
    if not kinds:
        near = nearest(code)
        advice = f" Did you mean {' or '.join(near)}?" if near else ""
        raise RequestRefused(
            HTTPStatus.NOT_FOUND, "unknown-code", f"{code[:60]!r} is not a code of this release.{advice}", nearest=near
        )
    return request.json_answer({"code": kinds[0].code, "entries": [kind.as_json() for kind in kinds]})


LINE = object_of(code=TEXT, kind=TEXT, severity=TEXT, title=TEXT)
ENTRY = perhaps(
    object_of(code=TEXT, kind=TEXT, severity=TEXT, title=TEXT, meaning=TEXT, fix=TEXT, page=TEXT), look_at=TEXT
)

ROUTES = (
    Route(
        "GET",
        f"{API}/codes",
        _show_codes,
        "Every code of this release: of alerts, events, reasons, checks, hazards, and Kafka's errors",
        answers={200: object_of(codes=list_of(LINE))},
    ),
    Route(
        "GET",
        f"{API}/codes/{{code}}",
        _show_code,
        "What a code means, and what to do",
        answers={200: object_of(code=TEXT, entries=list_of(ENTRY))},
    ),
)
