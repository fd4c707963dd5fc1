"""A driver with rows of partitions, whose metrics are collected."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from lockstep_config.keys.lockstep_settings import VerifySettings
from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.metrics_collector import MetricsCollector, SlotRun
from lockstep_data_plane.driver.replica_monitor import ReplicaMonitor
from lockstep_data_plane.driver.switch_metrics import SwitchMetrics
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.offsets.lag import LogRange
from lockstep_rules.switch.switch_readiness import SwitchLimits
from lockstep_runtime.flow.context import Clock
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.state.state_log import StateLog
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import (
    Assignment,
    MirroredTopic,
    PartitionProgress,
    Row,
)
from tests.support.metrics import Page, read_page, values

T = 1_700_000_000_000
FLOW = Flow("A", "B")
PRODUCER = '"connector-producer-A->B.MirrorSourceConnector-0"'


LIMITS = SwitchLimits(max_lag_ms=10_000, syncs_groups=True)


@dataclass
class Plane:
    max_in_flight_bytes: int = 1000
    by_key: bool = False
    verify: VerifySettings = field(default_factory=VerifySettings)
    least_delay: timedelta | None = None


@dataclass
class Settings:
    data_plane: Plane = field(default_factory=Plane)
    switch_limits: SwitchLimits = LIMITS
    services: tuple[str, ...] = SERVICES
    group_id: str | None = None
    delays_ms: dict[str, int] = field(default_factory=dict)

    def delay_ms(self, topic: str) -> int:
        return self.delays_ms.get(topic, 0)

    def needs(self, service: str) -> bool:
        return service in self.services


@dataclass
class Rounds:
    troubles: FailureTracker


@dataclass
class Leads:
    """Whether another replica has led since this one did."""

    others: bool = False

    def claimed_by_others(self, term: int, instance: str) -> bool:
        assert (term, instance) == (1, "me")
        return self.others


class Driver:
    """A flow's context as far as `MetricsCollector` asks, with a real fold of the rows."""

    def __init__(self) -> None:
        self.now, self.service = T, "data-plane"
        self.flow, self.settings, self.metrics, self.is_acting = FLOW, Settings(), Metrics(), True
        self.term, self.instance, self.leadership = 1, "me", Leads()
        self.clock = Clock(wall_ms=lambda: self.now, monotonic=lambda: self.now / 1000)
        self.state = StateLog(UnreadableRecords(FlowLog("data-plane", FLOW)), self.clock.wall_ms, lambda _: 0)
        self.periodic = Rounds(FailureTracker(FlowLog("data-plane", FLOW)))
        self.remote_troubles = FailureTracker(FlowLog("data-plane", FLOW))
        self.unreadable = UnreadableRecords(FlowLog("data-plane", FLOW))
        self.log = FlowLog("data-plane", FLOW)
        self.kept: dict[int, SlotRun] = {0: SlotRun("r1")}
        self.collector = MetricsCollector(self, lambda: self.kept)  # type: ignore[arg-type]  # the attributes it reads
        self.replicas = ReplicaMonitor(self)  # type: ignore[arg-type]  # the attributes it reads
        SwitchMetrics(self, self.collector, self.replicas)  # type: ignore[arg-type]  # the attributes it reads
        self._offset = 0
        self.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=2, target_partitions=2))

    @property
    def desired_state(self) -> DesiredStateView:
        return DesiredStateView(self.state.rows)

    def say(self, *rows: Row) -> None:
        for row in rows:
            key, value = replace(row, at_ms=row.at_ms or self.now).encode()
            self.state.receive([Record("state", 0, self._offset, key, value, self.now)])
            self._offset += 1

    def assign(self, *partitions: tuple[str, int], slot: int = 0) -> None:
        self.collector.follow(partitions)
        self.say(Assignment(slot=slot, partitions=partitions))

    def observe(self, ends: dict[tuple[str, int], int | None], *, stuck: Any = (), resting: Any = ()) -> None:
        """The driver looks at the clusters: the source's logs end there (None: not answered), the target has all."""
        rows = {tp: self.state.get(PartitionProgress, tp[0], str(tp[1])) for tp in ends}
        seen = {tp: ObservedPartition(rows[tp], None if end is None else LogRange(0, end)) for tp, end in ends.items()}
        self.collector.on_observed(stuck, seen, resting)

    def page(self) -> Page:
        return read_page(self.metrics.exposition().decode())

    def value(self, name: str, **labels: str) -> float:
        """Return the only sample with these labels."""
        (value,) = values(self.page(), name, **labels)
        return value


def row(number: int = 0, **more: Any) -> PartitionProgress:
    return PartitionProgress(
        **{
            "topic": "t",
            "partition": number,
            "producer_id": 1,
            "slot": 0,
            "source_end": more.get("upstream", -1) + 1,
            **more,
        }
    )


def copying(**more: Any) -> Driver:
    driver = Driver()
    driver.assign(("t", 0))
    driver.say(row(**more))
    return driver
