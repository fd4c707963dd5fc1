"""Flows as connectors of Kafka Connect: what its REST interface says of them (`GET /connectors` and below). Pure.

A flow has MirrorMaker 2's three connectors, as far as the file lets them work. The tasks of the source connector are
the slots of the data plane, and the others have one each. Bodies have the fields of Connect's
entities (`connect/runtime/rest/entities`), so that its clients read them.

Connect has no word for what is not known. Then the state is UNASSIGNED, which is no good state either, and `trace`
says why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_config import FlowSettings
from lockstep_ops.status.report import PartitionLine, Report, ServiceLine, SlotLine
from lockstep_rules.filters import NameFilter
from lockstep_state.codecs.connect_offsets import OffsetChange, listing
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import ClusterCapabilities, Row, progress_by_partition

RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED = "RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED"

PACKAGE = "org.apache.kafka.connect.mirror"
"""The Java package in the names of the connectors' classes."""

SHOWN = 20
"""Most lines of a trace."""

_NOBODY_ACTS = frozenset({ReasonCode.NO_REPLICA, ReasonCode.REPLICAS_UNKNOWN, ReasonCode.SLOT_SILENT})
"""Reasons why nothing is known to act. They are no failures, for nobody has tried."""

_RETRIED = frozenset({ReasonCode.PART_FAILS, ReasonCode.PARTS_FAIL})
"""Reasons of a slot that works, and that tries again by itself what fails."""

_TROUBLES: Mapping[Connector, str] = {Connector.CHECKPOINT: "groups", Connector.HEARTBEAT: "heartbeats"}
"""The subject of the report's trouble that is the failure of a connector's only task."""

_UNREAD = "its state has not been read yet"


@dataclass(frozen=True, slots=True)
class FlowConnector:
    """One connector of a flow, by the name that it has in Connect."""

    name: str
    settings: FlowSettings
    connector: Connector

    @property
    def class_name(self) -> str:
        """Return the name of MirrorMaker 2's class."""
        return f"{PACKAGE}.{self.connector.value}"


@dataclass(frozen=True, slots=True)
class WorkState:
    """The state of a connector or a task, the process that has it ("": none), and why it is so."""

    state: str
    worker: str = ""
    trace: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "worker_id": self.worker, **({"trace": self.trace} if self.trace else {})}


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The state of a connector, and of its tasks by their numbers."""

    connector: WorkState
    tasks: Mapping[int, WorkState]


# -- names -------------------------------------------------------------------------------------------------------------


def flow_connectors(flows: Iterable[FlowSettings]) -> dict[str, FlowConnector]:
    """Return the connectors that have work, by name, in the order of the flows.

    They are named as Strimzi and the metrics name them: `A->B.MirrorSourceConnector`.
    """
    connectors = [
        FlowConnector(f"{settings.flow}.{connector.value}", settings, connector)
        for settings in flows
        for connector in Connector
        if settings.needs(connector.owner)
    ]
    return {connector.name: connector for connector in connectors}


# -- state -------------------------------------------------------------------------------------------------------------


def connector_state(connector: Connector, report: Report | None, trouble: str = "") -> ConnectorState:
    """Return the state of a connector of a flow.

    Args:
        connector: The connector.
        report: The flow's report; None if it cannot be read.
        trouble: Why it cannot be read.
    """
    lines = {} if report is None else {line.service: line for line in report.services}
    owner = lines.get(connector.owner)
    if report is None or owner is None:
        return ConnectorState(WorkState(UNASSIGNED, trace=trouble or _UNREAD), {})
    # The source connector itself is what looks for topics and ACLs. Its tasks are the data plane's.
    helpers = [lines["acl-sync"]] if connector is Connector.SOURCE and "acl-sync" in lines else []
    state = _connector_work(owner, helpers)
    if state.state == STOPPED:
        return ConnectorState(state, {})
    if connector is not Connector.SOURCE:
        return ConnectorState(state, {0: _only_task(connector, state, report)})
    keeper = lines.get(connector.keeper)
    tasks = {} if keeper is None else {slot.slot: _slot_work(slot, keeper, report) for slot in _slots(report)}
    return ConnectorState(state, tasks)


def _connector_work(owner: ServiceLine, helpers: Iterable[ServiceLine]) -> WorkState:
    worker = _worker(owner)
    if _is(owner, STOPPED):
        return WorkState(STOPPED, worker)
    for line in (owner, *helpers):
        if line.cause:
            return _hindered(line.cause.code, worker, f"{line.service}: {line.trouble}")
    if not worker:
        return WorkState(UNASSIGNED, trace=f"{owner.service}: no replica acts")
    return WorkState(PAUSED if _is(owner, PAUSED) else RUNNING, worker)


def _only_task(connector: Connector, state: WorkState, report: Report) -> WorkState:
    """Return the state of the task of a connector that has one. What it tries again by itself has failed."""
    failing = [part for part in report.troubles if part.what == _TROUBLES.get(connector)]
    return WorkState(FAILED, state.worker, failing[0].why) if failing and state.state == RUNNING else state


def _slots(report: Report) -> list[SlotLine]:
    """Return the slots that are tasks now. One that has drained and ended is none, unless it failed."""
    return [slot for slot in report.slots if slot.phase == "started" or slot.cause]


def _slot_work(slot: SlotLine, line: ServiceLine, report: Report) -> WorkState:
    worker = _worker(line)
    if line.cause:
        return _hindered(line.cause.code, worker, f"{line.service}: {line.trouble}")
    if _is(slot, STOPPED):
        return WorkState(UNASSIGNED, trace=f"slot {slot.slot} is stopped")
    trace = f"slot {slot.slot}: {slot.trouble}" if slot.cause else ""
    if trace and slot.cause.code not in _RETRIED:
        return _hindered(slot.cause.code, worker, trace)
    halted = [part for part in report.partitions if part.slot == slot.slot and part.phase == "halted"]
    if halted:
        return WorkState(FAILED, worker, _halts(halted))
    return WorkState(PAUSED if _is(line, PAUSED) or _is(slot, PAUSED) else RUNNING, worker, trace)


def _hindered(code: str, worker: str, trace: str) -> WorkState:
    return WorkState(UNASSIGNED, trace=trace) if code in _NOBODY_ACTS else WorkState(FAILED, worker, trace)


def _worker(line: ServiceLine) -> str:
    """Return the instance that acted last, or "" if none did."""
    return max(((acting.since_ms, acting.instance) for acting in line.leaders), default=(0, ""))[1]


def _is(line: ServiceLine | SlotLine, state: str) -> bool:
    """Return whether an operator wants a part to be in a state."""
    return line.wanted == state.lower()


def _halts(halted: list[PartitionLine]) -> str:
    """Return the reasons of halted partitions, a line for each. They wait for a decision, as a failed task does."""
    lines = [f"partition {part.topic}-{part.partition}: {part.trouble}" for part in halted[:SHOWN]]
    more = len(halted) - SHOWN
    return "\n".join([*lines, f"and {more:,} more"] if more > 0 else lines)


# -- bodies ------------------------------------------------------------------------------------------------------------


def server_info(flows: Iterable[FlowSettings], version: str, cluster_ids: Iterable[str]) -> dict[str, Any]:
    """Return the body of `GET /`.

    `version` is the Kafka version whose MirrorMaker the flows are like, for clients ask by it what Connect can do.
    Lockstep's own is `commit`. The cluster id is null if flows have several targets, or if it is not known yet.

    Args:
        flows: All flows.
        version: Lockstep's version.
        cluster_ids: The ids of the targets, as far as they are known.
    """
    versions = {settings.rules.version for settings in flows}
    ids = set(cluster_ids)
    return {
        "version": f"{min(versions, key=_numbers)}.0" if versions else "",
        "commit": f"lockstep-{version}",
        "kafka_cluster_id": ids.pop() if len(ids) == 1 else None,
    }


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def target_ids(settings: FlowSettings, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the id of a flow's target, if its rows have it."""
    for row in rows:
        if isinstance(row, ClusterCapabilities) and row.alias == settings.flow.target and row.cluster_id:
            yield row.cluster_id


def plugins(version: str) -> list[dict[str, Any]]:
    """Return the body of `GET /connector-plugins`."""
    return [{"class": f"{PACKAGE}.{each.value}", "type": "source", "version": version} for each in Connector]


def connector_info(connector: FlowConnector, tasks: Iterable[int]) -> dict[str, Any]:
    """Return the body of `GET /connectors/NAME`."""
    return {
        "name": connector.name,
        "config": connector_config(connector),
        "tasks": [_task_id(connector, number) for number in sorted(tasks)],
        "type": "source",
    }


def connector_status(connector: FlowConnector, state: ConnectorState) -> dict[str, Any]:
    """Return the body of `GET /connectors/NAME/status`."""
    return {
        "name": connector.name,
        "connector": state.connector.as_json(),
        "tasks": [task_status(number, task) for number, task in sorted(state.tasks.items())],
        "type": "source",
    }


def task_status(number: int, state: WorkState) -> dict[str, Any]:
    """Return the body of `GET /connectors/NAME/tasks/N/status`."""
    return {"id": number, **state.as_json()}


def task_list(connector: FlowConnector, tasks: Iterable[int]) -> list[dict[str, Any]]:
    """Return the body of `GET /connectors/NAME/tasks`."""
    config = connector_config(connector)
    return [{"id": _task_id(connector, number), "config": config} for number in sorted(tasks)]


def _task_id(connector: FlowConnector, number: int) -> dict[str, Any]:
    return {"connector": connector.name, "task": number}


def connector_topics(connector: FlowConnector, report: Report | None) -> dict[str, Any]:
    """Return the body of `GET /connectors/NAME/topics`: the topics on the target that it has written to."""
    settings = connector.settings
    match connector.connector:
        case Connector.SOURCE:
            topics = sorted({line.remote for line in report.topics if line.begun} if report else ())
        case Connector.CHECKPOINT:
            topics = [settings.checkpoints_topic]
        case Connector.HEARTBEAT:
            topics = [settings.policy.heartbeats_topic()]
    return {connector.name: {"topics": topics}}


def connector_offsets(connector: FlowConnector, rows: Iterable[Row]) -> dict[str, Any]:
    """Return the body of `GET /connectors/NAME/offsets`: the last offset of each source partition that was copied.

    Offsets of the other two connectors have no function, and are not listed.
    """
    if connector.connector is not Connector.SOURCE:
        return {"offsets": []}
    cluster = connector.settings.aliases.source
    progress = sorted(progress_by_partition(rows).items())
    return listing(
        OffsetChange({"cluster": cluster, "partition": number, "topic": topic}, row.upstream)
        for (topic, number), row in progress
        if row.upstream >= 0 and row.begins != "reset"
    )


def connector_config(connector: FlowConnector) -> dict[str, str]:
    """Return the body of `GET /connectors/NAME/config`: what the connector does, and nothing of how clients log in.

    `lockstep config show` has every setting.
    """
    settings = connector.settings
    config = {
        "name": connector.name,
        "connector.class": connector.class_name,
        "source.cluster.alias": settings.aliases.source,
        "target.cluster.alias": settings.aliases.target,
        "source.cluster.bootstrap.servers": settings.source.bootstrap,
        "target.cluster.bootstrap.servers": settings.target.bootstrap,
    }
    match connector.connector:
        case Connector.SOURCE:
            config |= _names("topics", settings.topics)
            config |= _number("tasks.max", settings.data_plane.tasks_max)
            config["sync.topic.acls.enabled"] = _word(settings.acl_sync.enabled)
            config["sync.topic.configs.enabled"] = _word(settings.topic_sync.sync_configs)
            config["offset-syncs.topic.location"] = settings.data_plane.offset_syncs_location
        case Connector.CHECKPOINT:
            groups = settings.checkpoint
            config |= _names("groups", settings.groups)
            config |= _number("tasks.max", groups.tasks_max)
            config["emit.checkpoints.interval.seconds"] = f"{groups.emit_every.total_seconds():g}"
            config["sync.group.offsets.enabled"] = _word(groups.sync_group_offsets)
        case Connector.HEARTBEAT:
            config["emit.heartbeats.interval.seconds"] = f"{settings.heartbeat.every.total_seconds():g}"
    return config


def _names(key: str, names: object) -> dict[str, str]:
    """Return a list of patterns as the file has it; a filter in Python has none."""
    if not isinstance(names, NameFilter):
        return {}
    return {key: ",".join(names.include), f"{key}.exclude": ",".join(names.exclude)}


def _number(key: str, value: int | None) -> dict[str, str]:
    return {} if value is None else {key: str(value)}


def _word(flag: bool) -> str:
    return str(flag).lower()
