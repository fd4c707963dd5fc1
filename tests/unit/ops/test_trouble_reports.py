"""Reports of replicas in `lockstep status`."""

from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.status.report import Trouble
from lockstep_ops.status.trouble_reports import decode_reports, reported_troubles, unreadable_topics
from lockstep_state.events import Event
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.trouble_report import TROUBLES_REPORTED, TroubleReport

REFUSED = ReasonCode.REQUEST_REFUSED.to_reason(
    cluster="B", operation="create", resource="topic t", error=17, text="not permitted"
)
REFUSED_TEXT = "target: cluster B refused to create topic t: not permitted"
AWAY = ReasonCode.CLUSTER_UNREACHABLE.to_reason(cluster="A", text="cluster A cannot be reached")


def report(service: str, *troubles: tuple[str, Reason], unreadable: tuple[tuple[str, int], ...] = ()) -> TroubleReport:
    return TroubleReport(service=service, instance="i", troubles=troubles, unreadable=unreadable, valid_ms=1000)


def record(value: bytes | None) -> Record:
    return Record("events", 0, 7, b"i", value, 42)


def written(said: TroubleReport, kind: str = TROUBLES_REPORTED) -> bytes:
    event = Event(kind=kind, service=said.service, flow="A->B", instance=said.instance, detail=said.detail())
    return event.encode()[1]


def test_same_trouble_of_several_services_is_one_line() -> None:
    said = [report("topic-sync", ("target", REFUSED)), report("heartbeat", ("target", REFUSED))]
    assert reported_troubles(said) == [Trouble("heartbeat, topic-sync", REFUSED_TEXT, REFUSED.code)]


def test_cluster_that_is_known_to_be_away_has_one_line() -> None:
    said = [report("heartbeat", ("beats", AWAY), ("target", REFUSED))]
    assert reported_troubles(said, [Trouble("cluster A", "away")]) == [Trouble("heartbeat", REFUSED_TEXT, REFUSED.code)]
    assert len(reported_troubles(said, [Trouble("cluster B", "away")])) == 2


def test_trouble_with_a_code_of_a_newer_release_is_shown() -> None:
    (trouble,) = reported_troubles([report("heartbeat", ("target", Reason("flooded", (("depth", 3),))))])
    assert "flooded" in trouble.why


def test_reports_among_other_records_are_decoded() -> None:
    said = report("heartbeat", ("target", REFUSED))
    others = [record(None), record(b"{"), record(written(said, "TopicCreated"))]
    assert decode_reports([*others, record(written(said))]) == ([(42, said)], [])


def test_report_that_cannot_be_read_is_named_with_its_offset() -> None:
    garbage = written(report("heartbeat")).replace(b'"valid_ms":1000', b'"valid_ms":null')
    reports, unreadable = decode_reports([record(garbage), record(b'{"kind":"TroublesReported"')])
    assert reports == []
    assert ["events partition 0 offset 7" in trouble.why for trouble in unreadable] == [True, True]


def test_unreadable_records_are_counted_by_topic_and_replica() -> None:
    (line,) = unreadable_topics([report("checkpoint", unreadable=(("commands", 2), ("state", 0)))])
    assert (line.service, line.instance, line.topic, line.count) == ("checkpoint", "i", "commands", 2)
