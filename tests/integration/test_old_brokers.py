"""A cluster with no version of a request in common with the slots, and with all that the other services need."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import SlotStatus
from lockstep_state.trouble_report import TROUBLES_REPORTED, TroubleReport
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror
from tests.support.proxy import Proxy

pytestmark = pytest.mark.long

FETCH = APIS["fetch"]
WITHIN = 90.0


@pytest.fixture
def old_source(proxy_a: Proxy) -> Iterator[Proxy]:
    """A's proxy, which announces a version of Fetch that is too old."""
    proxy_a.announce({FETCH.key: FETCH.oldest - 1})
    yield proxy_a
    proxy_a.announce({})


def reported(mirror: Mirror) -> list[list[str]]:
    """Return the codes that each report of the data plane names."""
    events = [event for event in mirror.flow.events(TROUBLES_REPORTED) if event.service == "data-plane"]
    return [[reason.code for _, reason in TroubleReport.from_event(event).troubles] for event in events]


def test_source_that_is_too_old_is_named_until_it_is_upgraded(
    tmp_path: Path, broker_a: Broker, broker_b: Broker, old_source: Proxy
) -> None:
    mark = uuid.uuid4().hex[:6]
    a, b = (broker_a.bootstrap, old_source.bootstrap), (broker_b.bootstrap, broker_b.bootstrap)
    with Mirror.one_flow(tmp_path, mark, a, b, "emit.heartbeats.enabled = false", slots=2) as mirror:
        topic = create_topic(broker_a.bootstrap, f"{mark}-numbers", partitions=4)
        produce(broker_a.bootstrap, topic, [Record(value=b"%d" % n, partition=n % 4) for n in range(100)])
        code = ReasonCode.REQUEST_UNFIT.value

        def causes() -> list[tuple[str, str]]:
            return [(name, cause.code) for row in mirror.flow.rows(SlotStatus) for name, cause in row.causes]

        named = {(f"{topic}-{number}", code) for number in range(4)}
        wait_until(lambda: named <= set(causes()), within=WITHIN, what="each partition names the cause")
        assert {cause for _, cause in causes()} == {code}
        wait_until(lambda: any(code in codes for codes in reported(mirror)), within=WITHIN, what="a report")
        text = lockstep("status", mirror.config, "--output", "json", code=1)
        (flow,) = json.loads(text)["flows"]
        numbers = f"knows versions 0 to {FETCH.oldest - 1}, and Lockstep versions {FETCH.oldest} to {FETCH.newest}"
        assert any(numbers in trouble["why"] for trouble in flow["troubles"]), flow["troubles"]
        assert mirror.data_plane.said("cluster unreachable") == []
        assert len(mirror.data_plane.said(f"cluster {mirror.flow.flow.source} failing")) == 1
        assert mirror.data_plane.text().count(numbers) == 1

        old_source.announce({})
        mirror.flow.wait_copied(topic)
        mirror.data_plane.hear(f"cluster {mirror.flow.flow.source} recovered")
        wait_until(lambda: code not in reported(mirror)[-1], within=WITHIN, what="a report that it is over")
