"""Reads what replicas report on the events topic: what fails in them now, and what they passed over."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError, TopicMissing
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.clusters import REFUSED_S, target_client
from lockstep_ops.status.report import Trouble, UnreadableTopic
from lockstep_runtime.util.clock import now_ms
from lockstep_state.events import decode_event
from lockstep_state.names import events_topic
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.row import NewerVersion
from lockstep_state.trouble_report import LONGEST_VALID_MS, TROUBLES_REPORTED, TroubleReport, present_reports

REPORTS = "reports of services"


async def read_reports(settings: FlowSettings, silent_s: float) -> tuple[list[TroubleReport], list[Trouble]]:
    """Return what the replicas of a flow report now, and why something of it is not known.

    A target that does not answer raises nothing: that is among the latter. A flow without an events topic has no
    reports.

    Args:
        settings: The flow.
        silent_s: The seconds for which nothing may come of the topic.
    """
    topic, since_ms = events_topic(settings.flow, settings.group_id), now_ms() - LONGEST_VALID_MS
    records: list[Record] = []
    try:
        target = target_client(settings, refused_s=REFUSED_S)
        starts = await target.offsets_since([(topic, 0)], since_ms)
        start = starts.get((topic, 0))
        if start == -1:  # there is no record of that time
            return [], []
        follower = target_follower(
            settings,
            "status",
            topic,
            records.extend,
            partitions=[0],
            starts={} if start is None else {0: start},
        )
        await follower.replay(silent_s=silent_s)
    except TopicMissing:
        return [], []
    except ClusterError as trouble:
        return [], [Trouble(REPORTS, f"not known: {trouble}")]
    return reports_now(records)


def reports_now(records: Iterable[Record]) -> tuple[list[TroubleReport], list[Trouble]]:
    """Return what records of the events topic say that replicas report now, and those that cannot be read."""
    reports, unreadable = decode_reports(records)
    return present_reports(reports, now_ms()), unreadable


def decode_reports(records: Iterable[Record]) -> tuple[list[tuple[int, TroubleReport]], list[Trouble]]:
    """Return the reports among records of the events topic with their timestamps, and those that cannot be read."""
    reports: list[tuple[int, TroubleReport]] = []
    unreadable: list[Trouble] = []
    for record in records:
        if record.value is None or TROUBLES_REPORTED.encode() not in record.value:
            continue
        try:
            event = decode_event(record.value)
            if event.kind == TROUBLES_REPORTED:
                reports.append((record.timestamp_ms, TroubleReport.from_event(event)))
        except (NewerVersion, ValueError) as exc:
            unreadable.append(Trouble(REPORTS, f"not known: {record.location}: {exc}"))
    return reports, unreadable


def reported_troubles(reports: Iterable[TroubleReport], shown: Collection[Trouble] = ()) -> list[Trouble]:
    """Return what fails in replicas, once for all services in which the same fails.

    Args:
        reports: The present reports.
        shown: Troubles that are shown already. A cluster that is away is not named again.
    """
    away = {trouble.what for trouble in shown}
    services: dict[tuple[str, str], set[str]] = defaultdict(set)
    for report in reports:
        for name, reason in report.troubles:
            is_away = reason.code == ReasonCode.CLUSTER_UNREACHABLE and f"cluster {reason.detail('cluster')}" in away
            if not is_away:
                services[f"{name}: {format_sentence(reason)}", reason.code].add(report.service)
    return [Trouble(", ".join(sorted(names)), sentence, code) for (sentence, code), names in services.items()]


def unreadable_topics(reports: Sequence[TroubleReport]) -> tuple[UnreadableTopic, ...]:
    """Return the records that each replica passed over, if any."""
    return tuple(
        UnreadableTopic(report.service, report.instance, topic, count)
        for report in reports
        for topic, count in report.unreadable
        if count
    )
