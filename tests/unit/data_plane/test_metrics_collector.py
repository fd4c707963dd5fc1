"""What the driver's page shows of slots, from their rows alone: over restarts, moves and changes of leader."""

from dataclasses import replace

import pytest

from lockstep_data_plane.driver.metrics import METRICS
from lockstep_data_plane.driver.metrics_collector import SlotRun
from lockstep_runtime.flow import common_metrics
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, SlotStatus
from tests.support.metered_driver import PRODUCER, Driver, T, copying, row

CONSUMER = '"A->B|A->B.MirrorSourceConnector-0|replication-consumer"'


class TestCounts:
    def test_metrics_counters_continue_when_a_slot_restarts(self) -> None:
        driver = Driver()
        driver.assign(("t", 0))
        for since, records, size in ((1, 100, 9_000), (1, 120, 12_000), (2, 10, 500), (2, 300, 15_000)):
            driver.say(row(records=records, bytes=size, read_bytes=2 * size, counts_since=since))
        assert driver.value("lockstep_records_total", topic="t", partition="0") == 120 + 300
        assert driver.value("lockstep_bytes_total") == 12_000 + 15_000
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_count") == 420
        assert driver.value("kafka_consumer_incoming_byte_total", clientid=CONSUMER) == 2 * 27_000
        assert driver.value("kafka_producer_outgoing_byte_total", clientid=PRODUCER) == 27_000

    def test_partitions_count_apart(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0, records=3, counts_since=1), row(1, records=5, counts_since=1))
        assert driver.value("lockstep_records_total", partition="0") == 3
        assert driver.value("lockstep_records_total", partition="1") == 5

    def test_metrics_counters_exclude_those_of_a_former_driver(self) -> None:
        driver = Driver()
        driver.say(row(records=1000, bytes=1000, counts_since=1, gaps=(("in-doubt", 3),)))
        driver.assign(("t", 0))
        assert driver.value("lockstep_records_total") == 0
        driver.say(row(records=1010, bytes=1010, counts_since=1, gaps=(("in-doubt", 4),)))
        driver.say(row(records=5, bytes=5, counts_since=2, gaps=(("in-doubt", 4),)))
        assert driver.value("lockstep_records_total") == 15
        assert driver.value("lockstep_gaps_total", case="in-doubt") == 1

    @pytest.mark.parametrize(("others_led", "records", "gaps"), [(True, 100, 0), (False, 800, 1)])
    def test_counts_while_this_driver_did_not_lead_are_of_who_led(
        self, others_led: bool, records: int, gaps: int
    ) -> None:
        """A gap that is found while the lead is lost for a moment sets off its alert all the same."""
        driver = copying(records=100, counts_since=1)
        driver.collector.reset()
        driver.leadership.others = others_led
        driver.say(row(records=700, counts_since=2, gaps=(("in-doubt", 1),)))
        driver.assign(("t", 0))
        driver.say(row(records=705, counts_since=2, gaps=(("in-doubt", 1),)))
        assert driver.value("lockstep_records_total") == records + 5
        assert driver.value("lockstep_gaps_total", case="in-doubt") == gaps

    def test_rows_of_an_older_release_count_as_of_one_beginning(self) -> None:
        driver = copying(records=5)
        driver.say(row(records=8))
        assert driver.value("lockstep_records_total") == 8

    def test_rates_are_per_second_over_the_window(self) -> None:
        driver = copying(records=600, bytes=6000, counts_since=1)
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_rate") == 20
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_byte_rate") == 200
        assert driver.collector.byte_rates() == {("t", 0): 200}
        driver.now += 60_000
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_rate") == 0
        assert driver.collector.byte_rates() == {("t", 0): 0}
        driver.assign(("t", 1))
        assert driver.collector.byte_rates() == {("t", 1): 0}

    def test_gaps_of_the_flow_add_up_by_case(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0, gaps=(("records-gone", 1),), given_up=7, target_lost=5), row(1, gaps=(("records-gone", 2),)))
        assert driver.value("lockstep_gaps_total", case="records-gone") == 3
        assert driver.value("lockstep_given_up_offsets_total", partition="0") == 7
        assert driver.value("lockstep_target_lost_offsets_total", partition="0") == 5
        driver.assign(("t", 1))
        assert driver.value("lockstep_gaps_total", case="records-gone") == 3

    def test_offset_syncs_of_all_runs_of_a_slot_add_up(self) -> None:
        driver = copying()
        driver.say(SlotStatus(slot=0, phase="started", run="r1", syncs=10))
        driver.say(SlotStatus(slot=0, phase="started", run="r0", syncs=90))  # one that is over
        driver.kept = {0: SlotRun("r2", restarts=1)}
        driver.say(SlotStatus(slot=0, phase="started", run="r2", syncs=12))
        assert driver.value("lockstep_offset_syncs_total", slot="0") == 22

    def test_bytes_of_links_add_up_over_slots_and_runs(self) -> None:
        driver = copying()
        driver.kept = {0: SlotRun("r1", restarts=0), 1: SlotRun("q1", restarts=0)}
        sent, received = ("B", "sent", "east"), ("A", "received", "")
        driver.say(SlotStatus(slot=0, phase="started", run="r1", link_bytes=((*sent, 100), (*received, 70))))
        driver.say(SlotStatus(slot=0, phase="started", run="r1", link_bytes=((*sent, 130), (*received, 80))))
        driver.say(SlotStatus(slot=1, phase="started", run="q1", link_bytes=((*sent, 7),)))
        driver.kept = {0: SlotRun("r2", restarts=1), 1: SlotRun("q1", restarts=0)}
        driver.say(SlotStatus(slot=0, phase="started", run="r2", link_bytes=((*sent, 5),)))
        assert driver.value("lockstep_link_bytes_total", cluster="B", direction="sent", rack="east") == 130 + 7 + 5
        assert driver.value("lockstep_link_bytes_total", cluster="A", direction="received", rack="") == 80


class TestSeries:
    def test_metrics_of_a_partition_that_leaves_the_flow_are_removed(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0), row(1))
        assert len(driver.page()["lockstep_lag_records"]) == 2
        driver.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=2, phase="excluded"))
        driver.say(MirroredTopic(source_topic="u", target_topic="A.u", partitions=2, target_partitions=2))
        driver.assign(("u", 1))
        driver.say(replace(row(1), topic="u"))
        remaining = [s for samples in driver.page().values() for s in samples if s[0].get("topic") in ("t", "A.t")]
        assert remaining == []
        assert driver.value("lockstep_partitions") == 1

    def test_a_replica_that_does_not_lead_shows_none(self) -> None:
        driver = copying()
        driver.is_acting = False
        assert driver.page() == {}

    def test_metrics_counters_continue_when_another_slot_has_the_partition(self) -> None:
        driver = copying(read_bytes=10, counts_since=1)
        driver.say(Assignment(slot=0))
        driver.assign(("t", 0), slot=1)
        driver.say(row(slot=1, read_bytes=7, counts_since=2))
        incoming = driver.page()["kafka_consumer_incoming_byte_total"]
        assert sorted(value for _, value in incoming) == [7, 10]
        assert driver.value("kafka_consumer_fetch_manager_records_lag", clientid=CONSUMER.replace("r-0", "r-1")) == 0

    def test_each_declared_metric_is_shown(self) -> None:
        driver = copying()
        driver.say(
            SlotStatus(
                slot=0,
                phase="started",
                run="r1",
                link_bytes=(("A", "received", "", 1),),
                transforms=(("pii", "v", 1, 1, 0, 1, 0),),
            )
        )
        shown = set(driver.page())
        others = {"lockstep_slot_restarts_total"}  # the driver's own
        verified = {"lockstep_verified_lag_seconds", "lockstep_verify_differences", "lockstep_not_verified_records"}
        assert {metric.shown_as for metric in METRICS} - shown == others | verified
        assert shown <= {metric.shown_as for metric in (*METRICS, *common_metrics.METRICS)}


class TestWindows:
    def test_metrics_of_mm2_have_the_remote_topic_and_both_aliases(self) -> None:
        driver = copying(age_window=(T, 4, 1, 9, 5), latency_window=(T, 6, 2, 11, 7))
        mm2_labels = {"source": "A", "target": "B", "topic": "A.t", "partition": "0"}
        prefix = "kafka_connect_mirror_mirrorsourceconnector"
        for suffix, age, latency in (("", 4, 6), ("_min", 1, 2), ("_max", 9, 11), ("_avg", 5, 7)):
            assert driver.value(f"{prefix}_record_age_ms{suffix}", **mm2_labels) == age
            assert driver.value(f"{prefix}_replication_latency_ms{suffix}", **mm2_labels) == latency
