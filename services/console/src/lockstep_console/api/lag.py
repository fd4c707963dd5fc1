"""The history of a flow's lag."""

from lockstep_console.api.known_rows import known_rows
from lockstep_console.api.schemas import NUMBER, NUMBERS, TEXT, list_of, object_of
from lockstep_console.route import API, Answer, ConsoleRequest, Parameter, Route
from lockstep_console.views.lag_body import lag_body
from lockstep_runtime.util.clock import now_ms


async def _show_lag(request: ConsoleRequest) -> Answer:
    """Answer with the lag of the last hours, from the rows that the driver writes."""
    watch, hours = request.flow, request.number("hours", 24, least=1, most=24)
    rows, unknown = await known_rows(watch)
    return request.json_answer({"flow": watch.name, **lag_body(rows, now_ms(), hours), **unknown})


WORST = object_of(topic=TEXT, partition=NUMBER, step_s=NUMBER, lag_ms=NUMBERS)
LAG = object_of(
    flow=TEXT,
    step_s=NUMBER,
    begins_ms=NUMBER,
    lag_ms=NUMBERS,
    lag_records=NUMBERS,
    least_lag_ms=NUMBERS,
    least_lag_records=NUMBERS,
    records_per_s=NUMBERS,
    worst=list_of(WORST),
)

ROUTES = (
    Route(
        "GET",
        f"{API}/flows/{{flow}}/lag",
        _show_lag,
        "The lag of the last hours; null is unknown",
        query=(Parameter("hours", "How many hours up to now", "integer", default=24, least=1, most=24),),
        answers={200: LAG},
    ),
)
