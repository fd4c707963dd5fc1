"""What slots pass over in topics that only they read is counted where the rest is."""

import json
import uuid
from pathlib import Path

import pytest

from lockstep_protocol.names import progress_topic
from lockstep_protocol.trouble_report import TROUBLES_REPORTED, TroubleReport
from tests.support.broker import Broker
from tests.support.broker_pairs import numbered_records
from tests.support.clusters import Record, create_topic, end_offsets, produce
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror

pytestmark = pytest.mark.long

WITHIN = 90.0


def test_progress_that_slots_cannot_read_is_counted(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    mark = uuid.uuid4().hex[:6]
    a, b = ((broker.bootstrap, broker.bootstrap) for broker in (broker_a, broker_b))
    lines = (f"t{mark}.exactly.once.source.support = enabled", "emit.heartbeats.enabled = false")
    with Mirror.one_flow(tmp_path, mark, a, b, *lines) as mirror:
        progress = progress_topic(mirror.flow.flow)
        partitions = end_offsets(broker_b.bootstrap, progress)
        produce(broker_b.bootstrap, progress, [Record(key=b"[", value=b"[", partition=n) for n in partitions])
        topic = create_topic(broker_a.bootstrap, f"{mark}-numbers", partitions=1)
        produce(broker_a.bootstrap, topic, numbered_records(50))
        mirror.flow.wait_copied(topic, isolation="read_committed")

        def counted() -> int:
            reports = map(TroubleReport.from_event, mirror.flow.events(TROUBLES_REPORTED))
            counts = [dict(report.unreadable) for report in reports if report.service == "data-plane"]
            return counts[-1].get(progress, 0) if counts else 0

        wait_until(lambda: counted() == 1, within=WITHIN, what="the record of the partition that the slot reads")
        (flow,) = json.loads(lockstep("status", mirror.config, "--output", "json"))["flows"]
        assert [(line["service"], line["topic"], line["count"]) for line in flow["unreadable"]] == [
            ("data-plane", progress, 1)
        ]
        assert f'lockstep_unreadable_records_total{{flow="{mirror.flow}"' in mirror.data_plane.page("/metrics")[1]
