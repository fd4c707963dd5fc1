"""The watches over all flows of a file. Flows to one cluster share its clients."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from lockstep_config import FlowSettings
from lockstep_console.cluster_probes import ClusterProbes
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.followed.target_topics import TargetTopics
from lockstep_console.report_turns import ReportTurns
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import to_next_tick, without_end
from lockstep_ops.clusters import source_client, target_client
from lockstep_ops.status.flow_report import FlowClients
from lockstep_state.names import Flow

LOOK_INTERVAL_S = 1.0
"""The seconds between two looks at what other consoles have left."""


class FlowWatches:
    """The watches by flow, in the order of the file. Run them as long as the console lives."""

    def __init__(self, flows: Sequence[FlowSettings]) -> None:
        clients: dict[tuple[object, ...], Admin] = {}
        topics: dict[tuple[object, ...], TargetTopics] = {}
        turns = ReportTurns()
        self._watches: dict[str, FlowWatch] = {}
        for settings in flows:
            of_flow = _shared_clients(settings, clients)
            connection = (settings.flow.target, _connection(settings.clients.target_consumer))
            if connection not in topics:
                topics[connection] = TargetTopics(settings, of_flow.target)
            self._watches[str(settings.flow)] = FlowWatch(settings, of_flow, topics[connection], turns)
        self._topics = tuple(topics.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._watches)

    @property
    def all(self) -> tuple[FlowWatch, ...]:
        return tuple(self._watches.values())

    def watch(self, name: str) -> FlowWatch | None:
        """Return the watch over a flow by its name (`A->B`), or None if there is none."""
        return self._watches.get(name)

    def both_ways(self, watch: FlowWatch) -> list[FlowWatch]:
        """Return the watch, and the one over the flow in the other direction if there is one."""
        flow = watch.settings.flow
        opposite = self.watch(str(Flow(flow.target, flow.source)))
        return [each for each in (watch, opposite) if each is not None]

    async def look_again(self, what: str, look: Callable[[FlowWatch], None]) -> NoReturn:
        """Call `look` with each watch once a second, until cancelled.

        A flow with which it fails is unknown until it succeeds, and hides no other flow. `what` names it in the log.
        """
        while True:
            for watch in self.all:
                try:
                    look(watch)
                except Exception as exc:  # noqa: BLE001  # the rows of one flow end no look at another: it is logged
                    watch.note_mistake(what, exc)
                else:
                    watch.note_mistake(what, None)
            await asyncio.sleep(to_next_tick(LOOK_INTERVAL_S))

    async def run(self) -> None:
        """Follow all flows until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(without_end("the look at clusters", ClusterProbes(self.all).run()))
            for topics in self._topics:
                tasks.create_task(without_end(f"the topics on {topics.target.alias}", topics.run()))
            for watch in self.all:
                tasks.create_task(without_end(f"the watch over {watch.name}", watch.run()))


def _shared_clients(settings: FlowSettings, clients: dict[tuple[object, ...], Admin]) -> FlowClients:
    """Return the clients of a flow's clusters. Those that `clients` has for the same connection are taken again."""
    sides = (
        (settings.flow.source, settings.clients.source_admin, source_client),
        (settings.flow.target, settings.clients.target_admin, target_client),
    )
    source, target = (
        clients.setdefault((alias, _connection(properties)), make(settings)) for alias, properties, make in sides
    )
    return FlowClients(source, target)


def _connection(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(properties.items()))
