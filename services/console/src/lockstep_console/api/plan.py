"""The plan of a flow, as `lockstep plan` makes it. It reads both clusters, so it may take long."""

import asyncio
import os
from http import HTTPStatus
from typing import Any

from lockstep_config import ConfigurationError, UnknownFlow
from lockstep_console.api.schemas import NUMBER, schema_of, with_members
from lockstep_console.changes import message
from lockstep_console.console import Console
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.plan.rules.flow_plan import Plan
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.http.stream import AnswerStream

ANSWERS_WITHIN_S = 10.0
"""The seconds within which a cluster has to answer for a plan."""

MADE_WITHIN_S = 120.0
"""The seconds within which a plan has to be made for a client that takes no stream."""

SHOWN_EVERY_S = 0.5

STREAM = "text/event-stream"


class Plans:
    """The plans that are made now, one for each flow. Who asks meanwhile gets the same one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._under_way: dict[str, tuple[asyncio.Task[dict[str, Any]], WorkProgress]] = {}

    def make(self, watch: FlowWatch) -> tuple[asyncio.Task[dict[str, Any]], WorkProgress]:
        """Return the plan of a flow that is made now, and how far it is."""
        if watch.name not in self._under_way:
            progress = WorkProgress("reaching the clusters")
            task = asyncio.ensure_future(self._plan(watch, progress))
            task.add_done_callback(lambda _: self._under_way.pop(watch.name, None))
            self._under_way[watch.name] = task, progress
        return self._under_way[watch.name]

    async def _plan(self, watch: FlowWatch, progress: WorkProgress) -> dict[str, Any]:
        """Make the plan of a flow of the file as it is now.

        Raises:
            RequestRefused: A cluster does not answer, or the file cannot be used.
        """
        # They hold 3 MiB, and most consoles are never asked for a plan.
        from lockstep_ops.plan.effective_settings import read_effective
        from lockstep_ops.plan.plan_document import as_body
        from lockstep_ops.plan.planner import Planner

        try:
            effective = await asyncio.to_thread(read_effective, self._console.identity.file, os.environ)
            settings = effective.configuration.flow(watch.settings.flow)
            return as_body(await Planner(ANSWERS_WITHIN_S).plan(effective, [settings], progress))
        except (ConfigurationError, UnknownFlow) as exc:
            raise RequestRefused(HTTPStatus.CONFLICT, "file-unusable", str(exc)) from exc
        except ClusterError as exc:
            raise RequestRefused(HTTPStatus.BAD_GATEWAY, "cluster-away", f"{exc}.", cluster=exc.alias) from exc


async def _show_plan(request: ConsoleRequest) -> Answer:
    """Answer with the plan, or with a stream that says how far it is and ends with the plan."""
    task, progress = request.console.part(Plans).make(request.flow)
    if STREAM not in request.raw.headers.get("Accept", ""):
        return request.json_answer(await request.within(MADE_WITHIN_S, asyncio.shield(task)))
    stream = await AnswerStream.open(request.raw)
    if stream is None:
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-streams", "Too many streams are open.")
    try:
        while not task.done():
            await stream.send(message("progress", {"text": progress.text, "fraction": progress.fraction}))
            await asyncio.wait({task}, timeout=SHOWN_EVERY_S)
        try:
            await stream.send(message("plan", task.result()))
        except RequestRefused as exc:
            error = {"code": exc.code, "sentence": str(exc), **exc.details}
            await stream.send(message("problem", {"error": error}))
    except ConnectionResetError:
        pass  # the client has gone; others may wait for the same plan
    return stream.answer


PLAN = with_members(schema_of(Plan), version=NUMBER)

ROUTES = (
    Route(
        "GET",
        f"{API}/flows/{{flow}}/plan",
        _show_plan,
        "What would be created, altered and copied. With Accept: text/event-stream it says how far it is",
        answers={200: PLAN},
        streams=True,
    ),
)
