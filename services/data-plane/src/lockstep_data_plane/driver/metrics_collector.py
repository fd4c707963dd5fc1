"""The counts of a flow's slots, from their rows in the state topic, and the samples of /metrics."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from lockstep_data_plane.core.evaluation import TRANSFORM_CASE
from lockstep_data_plane.driver import metrics as m
from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.lag_estimator import Lag, LagEstimator
from lockstep_data_plane.driver.monotonic_counter import MonotonicCounter, RowCounters
from lockstep_data_plane.driver.slot_counters import LinkCounters, TransformCounters
from lockstep_data_plane.driver.slot_reports import SlotReports
from lockstep_data_plane.slot.desired_partitions import has_failed
from lockstep_rules.offsets.gap_policy import GapCase
from lockstep_rules.offsets.lag import is_of_another_log, silent_after_s
from lockstep_rules.sliding_window import Rate, window_stats
from lockstep_runtime.flow import common_metrics as common
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.metric import row_metrics
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, Row, SlotStatus

CASES = (*(case.value for case in GapCase), "refused", TRANSFORM_CASE)
"""The words for why a partition halts (`PartitionProgress.case`)."""

STATES = ("copying", "not-begun", "halted", "paused", "stuck", "silent")
"""The states of a partition in `lockstep_partition_states`."""

SILENT_SLOT_AFTER_S = 7.0
"""Seconds after a slot's last report from which the driver checks the source often, for a minute."""
FREQUENT_CHECKS_FOR_S = 60.0


@dataclass(frozen=True, slots=True)
class SlotRun:
    """A slot that the driver keeps running: the name of its present run, and how often it has failed."""

    run: str
    restarts: int = 0


@dataclass(slots=True)
class _PartitionCounts:
    """The counts and rates of one partition's copy."""

    counters: RowCounters = field(default_factory=lambda: RowCounters(PartitionProgress))
    gaps: dict[str, MonotonicCounter] = field(default_factory=lambda: {case: MonotonicCounter() for case in CASES})
    record_rate: Rate = field(default_factory=Rate)
    byte_rate: Rate = field(default_factory=Rate)

    def start_from(self, row: PartitionProgress) -> None:
        """Leave out what the row has counted so far."""
        self.counters.start_from(row)
        for case, times in row.gaps:
            if case in self.gaps:
                self.gaps[case].start_from(row.producer_id, times)


class MetricsCollector:
    """The metrics of one flow while its driver leads. `slots` returns the runs that the driver keeps now."""

    def __init__(self, ctx: FlowContext, slots: Callable[[], Mapping[int, SlotRun]]) -> None:
        self._ctx = ctx
        self._slots = slots
        self._followed: frozenset[TopicPartition] = frozenset()
        self._term = 0
        """The last term in which this replica has led."""
        self._counts: dict[TopicPartition, _PartitionCounts] = {}
        self._gaps = dict.fromkeys(CASES, 0)
        self._incoming: dict[int, int] = defaultdict(int)
        self._outgoing: dict[int, int] = defaultdict(int)
        self._slot_series: dict[int, RowCounters] = defaultdict(lambda: RowCounters(SlotStatus))
        self._links = LinkCounters()
        self._transforms = TransformCounters()
        self._stuck: Collection[TopicPartition] = ()
        self._resting: Collection[TopicPartition] = ()
        self.copied_records = 0
        """The records that were copied since this process began, as far as it followed their partitions."""
        self.estimator = LagEstimator()
        self._slot_reports_at: dict[int, float] = {}
        self._slot_reports = SlotReports(ctx)
        ctx.state.listen(self.on_row)
        ctx.metrics.ask(self.samples)

    # -- from the driver -----------------------------------------------------------------------------------------------

    def follow(self, partitions: Collection[TopicPartition]) -> None:
        """Count these partitions from now on, and drop the series of all others.

        A row's counts of a newly followed partition are those of the former leader, and are left out. If no other
        replica has led since this one did, its counts go on with what slots did meanwhile.
        """
        ctx = self._ctx
        goes_on = self._term > 0 and not ctx.leadership.claimed_by_others(self._term, ctx.instance)
        self._term = ctx.term
        for tp in set(partitions) - self._followed:
            is_ours = goes_on and tp in self._counts
            counts = self._counts.setdefault(tp, _PartitionCounts())
            row = ctx.state.get(PartitionProgress, tp[0], str(tp[1]))
            if row is not None and is_ours:
                self._count(counts, row)
            elif row is not None:
                counts.start_from(row)
        self._followed = frozenset(partitions)
        self._counts = {tp: counts for tp, counts in self._counts.items() if tp in self._followed}

    def reset(self) -> None:
        """Show nothing until the driver leads again. The counts then go on."""
        self._followed, self._stuck, self._resting, self.estimator = frozenset(), (), (), LagEstimator()
        self._slot_reports_at = {}
        self._slot_reports.reset()

    def on_observed(
        self,
        stuck: Collection[TopicPartition],
        observed: Mapping[TopicPartition, ObservedPartition],
        resting: Collection[TopicPartition] = (),
    ) -> None:
        """Take over the result of a check.

        Args:
            stuck: Partitions that do not move although they have something to copy.
            observed: Both logs of each partition.
            resting: Partitions that an operator has paused or stopped.
        """
        self._stuck, self._resting = stuck, resting
        self.estimator.observe(observed, self._ctx.clock.monotonic())

    def selected(self) -> dict[TopicPartition, MirroredTopic]:
        """Return every partition that the target is to have, also if its topic is missing or could not be created."""
        topics = self._ctx.state.all(MirroredTopic)
        copied = [topic for topic in topics if topic.phase in ("mirrored", "failed")]
        return {(topic.source_topic, n): topic for topic in copied for n in range(topic.source_partitions)}

    @property
    def has_silent_slot(self) -> bool:
        """Return whether a slot with partitions has just fallen silent, or has not reported yet."""
        now = self._ctx.clock.monotonic()
        timers = (
            now - self._slot_reports_at.setdefault(row.slot, now - SILENT_SLOT_AFTER_S)
            for row in self._ctx.state.all(Assignment)
            if row.partitions and not row.ending
        )
        return any(SILENT_SLOT_AFTER_S <= timer <= FREQUENT_CHECKS_FOR_S for timer in timers)

    def on_row(self, row: Row) -> None:
        """Take over a row that has changed."""
        if isinstance(row, PartitionProgress):
            self.estimator.on_row(row, self._ctx.clock.monotonic())
            counts = self._counts.get((row.topic, row.partition))
            if counts is not None and (row.topic, row.partition) in self._followed:
                self._count(counts, row)
        elif (
            isinstance(row, SlotStatus)
            and (slot_run := self._slots().get(row.slot)) is not None
            and slot_run.run == row.run
        ):
            self._slot_reports_at[row.slot] = self._ctx.clock.monotonic()
            self._slot_series[row.slot].update(row)
            self._links.update(row)
            self._transforms.update(row)
            self._slot_reports.update(row)

    def _count(self, counts: _PartitionCounts, row: PartitionProgress) -> None:
        now = self._ctx.clock.wall_ms()
        grown = counts.counters.update(row)
        if grown["records"]:
            counts.record_rate.record(now, grown["records"])
            self.copied_records += grown["records"]
        if grown["bytes"]:
            counts.byte_rate.record(now, grown["bytes"])
            self._outgoing[row.slot] += grown["bytes"]
        self._incoming[row.slot] += grown["read_bytes"]
        for case, times in row.gaps:
            if case in counts.gaps:
                self._gaps[case] += counts.gaps[case].update(row.producer_id, times)

    def byte_rates(self) -> dict[TopicPartition, float]:
        """Return the bytes a second that were copied of each followed partition in the last minute."""
        now = self._ctx.clock.wall_ms()
        return {tp: counts.byte_rate.per_second(now) for tp, counts in self._counts.items()}

    # -- for /metrics --------------------------------------------------------------------------------------------------

    def samples(self) -> Iterator[Sample]:
        """Yield every metric that has a value now; nothing while another replica leads."""
        if not self._ctx.is_acting:
            return
        assigned = {
            row.slot: [tp for tp in row.partitions if tp in self._followed] for row in self._ctx.state.all(Assignment)
        }
        rows: list[PartitionProgress] = []
        lags = self.lags()
        for slot, partitions in sorted(assigned.items()):
            for topic, number in partitions:
                row = self._ctx.state.get(PartitionProgress, topic, str(number))
                if row is not None:
                    rows.append(row)
                    yield from self._partition(slot, row, lags.get((topic, number)))
        yield from self._flow(rows, lags)
        slot_runs = self._slots()
        slots = {slot: len(partitions) for slot, partitions in assigned.items() if partitions or slot in slot_runs}
        yield from self._slot_totals(slots, slot_runs)
        for slot, count in slots.items():
            yield from self._slot(slot, count, slot_runs.get(slot))

    def _partition(self, slot: int, row: PartitionProgress, lag: Lag | None) -> Iterator[Sample]:
        flow, now = self._ctx.flow, self._ctx.clock.wall_ms()
        tp = (row.topic, row.partition)
        labels = (str(flow), row.topic, str(row.partition))
        counts = self._counts[tp]
        totals = counts.counters.totals()
        yield from _row_samples(row, labels, totals)
        yield Sample(m.HALTED, labels, row.phase == "halted")
        yield Sample(m.STUCK, labels, tp in self._stuck)
        yield Sample(m.PAUSED, labels, tp in self._resting)
        if lag is not None:
            yield Sample(m.CONSUMER_LAG, (self._consumer(slot), row.topic, str(row.partition)), lag.records)
        mirrored = self._ctx.state.get(MirroredTopic, row.topic)
        remote = mirrored.target_topic if mirrored is not None else row.topic
        mm2_labels = (flow.source, flow.target, remote, str(row.partition))
        yield Sample(m.RECORD_COUNT, mm2_labels, totals["records"])
        yield Sample(m.RECORD_RATE, mm2_labels, counts.record_rate.per_second(now))
        yield Sample(m.BYTE_COUNT, mm2_labels, totals["bytes"])
        yield Sample(m.BYTE_RATE, mm2_labels, counts.byte_rate.per_second(now))
        for four, window in ((m.RECORD_AGE, row.age_window), (m.REPLICATION_LATENCY, row.latency_window)):
            for metric, value in zip(four, window_stats(window, now), strict=True):
                yield Sample(metric, mm2_labels, value)

    def lags(self) -> dict[TopicPartition, Lag | None]:
        """Return the lag of every partition that the target is to have; None: unknown."""
        state, clock = self._ctx.state, self._ctx.clock
        now, wall_ms = clock.monotonic(), clock.wall_ms()
        return {
            tp: self.estimator.lag(tp, state.get(PartitionProgress, tp[0], str(tp[1])), topic, now=now, wall_ms=wall_ms)
            for tp, topic in self.selected().items()
        }

    def states(self) -> dict[str, int]:
        """Return the number of partitions in each of `STATES`."""
        counts = dict.fromkeys(STATES, 0)
        for state in self.partition_states().values():
            counts[state] += 1
        return counts

    def partition_states(self) -> dict[TopicPartition, str]:
        """Return the state of every partition that the target is to have: one of `STATES`."""
        now = self._ctx.clock.monotonic()
        heard = {
            slot for slot, heard_at in self._slot_reports_at.items() if now - heard_at <= self._silent_after_s(slot)
        }
        assignments = [row for row in self._ctx.state.all(Assignment) if row.slot in heard and not row.ending]
        assigned = {tp for row in assignments for tp in row.partitions}
        return {tp: self._partition_state(tp, topic, assigned) for tp, topic in self.selected().items()}

    def _silent_after_s(self, slot: int) -> float:
        status = self._ctx.state.get(SlotStatus, str(slot))
        return silent_after_s(0 if status is None else status.pause_ms)

    def _partition_state(self, tp: TopicPartition, topic: MirroredTopic, assigned: Collection[TopicPartition]) -> str:
        row = self._ctx.state.get(PartitionProgress, tp[0], str(tp[1]))
        if row is not None and row.phase == "halted":
            return "halted"
        if tp in self._resting:
            return "paused"
        if row is None or is_of_another_log(row, topic) or tp not in self._followed:
            return "not-begun"
        if tp in self._stuck:
            return "stuck"
        return "copying" if tp in assigned else "silent"

    def _flow(self, rows: Collection[PartitionProgress], lags: Mapping[TopicPartition, Lag | None]) -> Iterator[Sample]:
        flow = str(self._ctx.flow)
        yield Sample(m.PARTITIONS, (flow,), len(self._followed))
        for link, total in self._links.totals().items():
            yield Sample(m.LINK_BYTES, (flow, *link), total)
        yield from self._transform_samples(flow)
        halted = [row.case for row in rows if row.phase == "halted"]
        for case in CASES:
            yield Sample(m.HALTED_PARTITIONS, (flow, case), halted.count(case))
            yield Sample(m.GAPS, (flow, case), self._gaps[case])
        for (topic, number), lag in lags.items():
            if lag is not None:
                yield Sample(m.LAG, (flow, topic, str(number)), lag.records)
                yield Sample(m.LAG_SECONDS, (flow, topic, str(number)), lag.seconds)
            yield Sample(m.DELAY_SECONDS, (flow, topic, str(number)), self._ctx.settings.delay_ms(topic) / 1000)
        yield Sample(m.LAG_UNKNOWN, (flow,), sum(lag is None for lag in lags.values()))
        for state, count in self.states().items():
            yield Sample(m.PARTITION_STATES, (flow, state), count)

    # -- slots ---------------------------------------------------------------------------------------------------------

    def _current_status(self, slot: int, slot_run: SlotRun | None) -> SlotStatus | None:
        """Return the last status row of the slot's present run."""
        status = self._ctx.state.get(SlotStatus, str(slot))
        return status if slot_run is not None and status is not None and status.run == slot_run.run else None

    def _task_state(self, slot: int, slot_run: SlotRun | None) -> str:
        """Return the state of a slot as Connect names the states of a task."""
        desired = self._ctx.desired_state.slot(slot)
        if desired is DesiredPhase.STOPPED:
            return "stopped"
        if self._current_status(slot, slot_run) is not None:
            return "paused" if desired is DesiredPhase.PAUSED else "running"
        failed = has_failed(self._ctx.state.rows, slot) or (slot_run is not None and slot_run.restarts)
        return "failed" if failed else "unassigned"

    def _slot_totals(self, slots: Mapping[int, int], slot_runs: Mapping[int, SlotRun]) -> Iterator[Sample]:
        flow = str(self._ctx.flow)
        states = [self._task_state(slot, slot_runs.get(slot)) for slot in slots]
        assigned = sum(count > 0 for count in slots.values())
        yield Sample(m.SLOTS, (flow, "assigned"), assigned)
        yield Sample(m.SLOTS, (flow, "running"), states.count("running"))
        yield Sample(m.SLOTS, (flow, "paused"), states.count("paused"))
        yield Sample(common.TASKS, (), states.count("running") + states.count("paused"))
        yield Sample(common.ASSIGNED_TASKS, (), assigned)
        connector = common.connector(self._ctx.flow, common.SOURCE)
        yield Sample(common.FAILED_TASKS, (connector,), states.count("failed"))

    def _slot(self, slot: int, partitions: int, slot_run: SlotRun | None) -> Iterator[Sample]:
        ctx = self._ctx
        labels, now = (str(ctx.flow), str(slot)), ctx.clock.wall_ms()
        task = (common.connector(ctx.flow, common.SOURCE), str(slot))
        status = self._current_status(slot, slot_run) or SlotStatus(slot=slot, phase="started")
        consumer = (self._consumer(slot),)
        producer = (common.quote_label(f"connector-producer-{ctx.flow}.{common.SOURCE}-{slot}"),)
        yield Sample(m.SLOT_PARTITIONS, labels, partitions)
        yield from _row_samples(status, labels, self._slot_series[slot].totals())
        yield Sample(m.SYNC_LATENCY, labels, window_stats(status.sync_window, now)[3] / 1000)
        yield Sample(common.CONNECTOR_STATUS, (*task, self._task_state(slot, slot_run)), 1)
        yield Sample(m.COMMIT_TIME, task, window_stats(status.commit_window, now)[3])
        yield Sample(m.ACTIVE_RECORDS, task, status.held_records)
        yield Sample(m.INCOMING, consumer, self._incoming[slot])
        yield Sample(m.OUTGOING, producer, self._outgoing[slot])
        limit = ctx.settings.data_plane.max_in_flight_bytes
        yield Sample(m.BUFFER_AVAILABLE, producer, max(0, limit - status.held_bytes))

    def _transform_samples(self, flow: str) -> Iterator[Sample]:
        for name, totals in self._transforms.totals().items():
            labels = (flow, name)
            yield Sample(m.TRANSFORM_RECORDS_IN, labels, totals.records_in)
            yield Sample(m.TRANSFORM_RECORDS_OUT, labels, totals.records_out)
            yield Sample(m.TRANSFORM_FAILED, labels, totals.failed)
            yield Sample(m.TRANSFORM_SECONDS, labels, totals.evaluating_ms / 1000)
            yield Sample(m.TRANSFORM_HELD, labels, totals.held_bytes)
            yield Sample(m.TRANSFORM_VERSION, (*labels, self._transforms.versions[name]), 1)

    def _consumer(self, slot: int) -> str:
        """Return the client id that MM2's task of the same number has."""
        flow = self._ctx.flow
        return common.quote_label(f"{flow}|{flow}.{common.SOURCE}-{slot}|replication-consumer")


def _row_samples(row: Row, labels: tuple[str, ...], totals: Mapping[str, int]) -> Iterator[Sample]:
    """Yield the metrics that the row's fields declare. `totals` has the fields that count since a start."""
    for name, declared in row_metrics(type(row)).items():
        if declared.metric is not None:
            yield Sample(
                declared.metric, labels, totals[name] if declared.since else getattr(row, name) / declared.divisor
            )
