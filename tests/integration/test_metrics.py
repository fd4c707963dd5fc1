"""The pages of a running mirror: every declared metric is there, no other is, and the figures are true."""

import time
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.clusters import Record, create_topic, produce, set_configs, unique_name
from tests.support.eventually import wait_until
from tests.support.metrics import (
    TRANSFORMING,
    read_page,
    values,
    wait_for_all_declared,
    wait_for_series,
    wait_for_value,
)
from tests.support.mirror import COPIED_WITHIN, Mirror, MirroredFlow
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.traffic import Traffic

RECORDS = 300
VERIFYING = frozenset({"lockstep_verified_lag_seconds", "lockstep_verify_differences", "lockstep_not_verified_records"})
"""Of flows that are verified (`test_verify_flows.py`)."""

RATE, DELAY_S = 300.0, 0.5


def test_mm2_081_179_180_data_plane_page_has_what_was_copied(mirror: Mirror, there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-metrics"), partitions=2)
    produce(there.source, topic, [Record(value=b"%d" % n, partition=n % 2) for n in range(RECORDS)])
    there.wait_copied(topic)

    wait_for_value(mirror.data_plane, RECORDS, "lockstep_records_total", within=COPIED_WITHIN, topic=topic)
    # What slots say of themselves comes each 5 seconds.
    wait_for_value(mirror.data_plane, 2, "lockstep_offset_syncs_total", within=COPIED_WITHIN, flow=str(there))
    # A new topic has a lag once the driver has asked both clusters for their ends, which it does each few seconds.
    wait_for_series(mirror.data_plane, 2, "lockstep_lag_records", within=COPIED_WITHIN, topic=topic)
    page = wait_for_all_declared(mirror.data_plane, "data-plane", elsewhere=VERIFYING | TRANSFORMING)
    flow = str(there)
    assert values(page, "lockstep_records_total", flow=flow, topic=topic) == [RECORDS / 2, RECORDS / 2]
    assert values(page, "lockstep_lag_records", topic=topic) == [0, 0]
    assert values(page, "lockstep_lag_seconds", topic=topic) == [0, 0]
    assert values(page, "lockstep_upstream_offset", topic=topic) == [RECORDS / 2 - 1, RECORDS / 2 - 1]
    assert values(page, "lockstep_partition_halted", topic=topic) == [0, 0]
    assert values(page, "kafka_consumer_fetch_manager_records_lag", topic=topic) == [0, 0]
    running, assigned = (values(page, "lockstep_slots", flow=flow, state=s) for s in ("running", "assigned"))
    assert running == assigned
    slots = [
        labels["clientid"] for labels, _ in page["kafka_consumer_incoming_byte_total"] if flow in labels["clientid"]
    ]
    assert slots == [f'"{flow}|{flow}.MirrorSourceConnector-{n}|replication-consumer"' for n in range(len(slots))]
    prefix, remote = "kafka_connect_mirror_mirrorsourceconnector", there.remote(topic)
    theirs = {"source": there.flow.source, "target": there.flow.target, "topic": remote}
    assert values(page, f"{prefix}_record_count", **theirs) == [RECORDS / 2, RECORDS / 2]
    assert all(0 < rate <= RECORDS / 2 / 30 for rate in values(page, f"{prefix}_record_rate", **theirs))
    for name in ("record_age_ms", "replication_latency_ms"):
        least, mean, most = (values(page, f"{prefix}_{name}_{part}", **theirs) for part in ("min", "avg", "max"))
        for figures in zip(least, mean, most, strict=True):
            assert 0 <= figures[0] <= figures[1] <= figures[2] < 1000 * COPIED_WITHIN
    sizes = values(page, "lockstep_bytes_total", topic=topic)
    assert all(size > RECORDS / 2 for size in sizes)
    fetched = sum(v for labels, v in page["kafka_consumer_incoming_byte_total"] if flow in labels["clientid"])
    assert fetched >= sum(sizes)


def test_lag_is_shown_in_records_and_in_seconds_while_records_wait(
    mirror: Mirror, there: MirroredFlow, proxy_b: Proxy
) -> None:
    """The target takes half a second to answer, and records keep coming."""
    topic = create_topic(there.source, unique_name("there-lag"))
    shown = ("lockstep_lag_records", "kafka_consumer_fetch_manager_records_lag", "lockstep_lag_seconds")

    def lags() -> list[float]:
        page = read_page(mirror.data_plane.page("/metrics")[1])
        return [value for name in shown for value in values(page, name, topic=topic)]

    with Traffic(there.source, topic, rate=RATE):
        there.wait_for_more(topic)
        proxy_b.delay(answers=DELAY_S)

        def waiting() -> list[float] | None:
            measured = lags()
            # Records come from the driver's question to both clusters, seconds from the slot's row: each at its own
            # time.
            return measured if measured and measured[0] >= DELAY_S * RATE / 2 and measured[2] >= DELAY_S / 2 else None

        records, of_consumer, seconds = wait_until(waiting, within=COPIED_WITHIN, every=0.1, what="records wait")
        assert of_consumer == records
        assert seconds < COPIED_WITHIN
        proxy_b.heal()
    there.wait_copied(topic)
    wait_until(lambda: lags() == [0, 0, 0], within=COPIED_WITHIN, every=0.1, what="no record waits")


@pytest.mark.parametrize("kind", ["CreateTime", pytest.param("LogAppendTime", marks=pytest.mark.long)])
def test_lag_in_seconds_has_no_part_of_record_timestamps(
    mirror: Mirror, there: MirroredFlow, proxy_b: Proxy, kind: str
) -> None:
    """Records of 1970, yesterday, tomorrow and 2262, each in its own partition, while the target answers late."""
    began, now_ms = time.monotonic(), round(time.time() * 1000)
    days = [0, now_ms - 86_400_000, now_ms + 86_400_000, 9_223_372_036_854]
    configs = {"message.timestamp.type": kind, "message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    topic = create_topic(there.source, unique_name("there-days"), partitions=len(days), configs=configs)
    there.wait_mirrored(topic, partitions=len(days))
    set_configs(there.target, there.remote(topic), {"message.timestamp.after.max.ms": str(2**63 - 1)})
    most = dict.fromkeys(range(len(days)), 0.0)

    def all_have_waited() -> bool:
        produce(there.source, topic, [Record(value=b"v", timestamp_ms=day, partition=n) for n, day in enumerate(days)])
        for labels, value in read_page(mirror.data_plane.page("/metrics")[1]).get("lockstep_lag_seconds", ()):
            if labels["topic"] == topic:
                most[int(labels["partition"])] = max(most[int(labels["partition"])], value)
        return all(value > 0 for value in most.values())

    proxy_b.delay(answers=DELAY_S)
    try:
        wait_until(all_have_waited, within=COPIED_WITHIN, every=0.2, what="each partition has waited")
    finally:
        proxy_b.heal()
    there.wait_copied(topic)
    assert all(value <= time.monotonic() - began for value in most.values()), (
        "no record waits for longer than it is there"
    )


def test_topic_sync_page_has_topics_and_rounds(mirror: Mirror, there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-metrics"))
    there.wait_mirrored(topic)
    page = wait_for_all_declared(mirror.topic_sync, "topic-sync")
    assert values(page, "lockstep_topics", flow=str(there), phase="mirrored")[0] >= 1
    assert values(page, "lockstep_rounds_total", flow=str(there), round="topic refresh")[0] >= 1
    assert values(page, "lockstep_acting", flow=str(there)) == [1]
    assert values(page, "kafka_connect_worker_rebalance_rebalancing") == [0]


def test_page_has_certificate_ends_before_any_cluster_answers(tmp_path: Path) -> None:
    authority = Authority()
    client = authority.certify("mirror", days=(-1, 7))
    trusted, own = tmp_path / "ca.pem", client.pem(tmp_path / "own.pem")
    trusted.write_text(authority.pem)
    nowhere = f"127.0.0.1:{free_port()}"
    file = two_cluster_file(
        tmp_path,
        ("A", nowhere),
        ("B", nowhere),
        "A->B.enabled = true",
        "B.security.protocol = SSL",
        *("B.ssl.truststore.type = PEM", f"B.ssl.truststore.location = {trusted}"),
        *("B.ssl.keystore.type = PEM", f"B.ssl.keystore.location = {own}"),
    )
    name = "lockstep_certificate_expires_timestamp_seconds"
    with ServiceProcess("lockstep_heartbeat", file, "A->B") as heartbeat:
        page = wait_until(
            lambda: name in (read := read_page(heartbeat.page("/metrics")[1])) and read, within=60.0, what=name
        )
    ends = {labels["use"]: (labels["flow"], labels["cluster"], value) for labels, value in page[name]}
    assert ends == {
        "keystore": ("A->B", "B", client.certificate.not_valid_after_utc.timestamp()),
        "truststore": ("A->B", "B", authority.own.certificate.not_valid_after_utc.timestamp()),
    }
