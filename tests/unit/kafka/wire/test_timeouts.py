"""When a silent broker's connection is given up, and what the file says of it."""

from datetime import timedelta

import pytest

from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_kafka.wire.timeouts import USUAL, Timeouts, timeouts_from

ASKED_AT = 1000.0
OPENING, ANSWERS = "socket.connection.setup.timeout.ms", "request.timeout.ms"


@pytest.mark.parametrize("kept_s", [0.01, 0.5, 60.0, 300.0])
def test_fetch_times_out_after_its_wait_plus_the_request_timeout(kept_s: float) -> None:
    timeouts = Timeouts(data_request_s=40.0)
    assert not timeouts.ends_fetch(ASKED_AT, ASKED_AT + kept_s + 40, kept_s)
    assert timeouts.ends_fetch(ASKED_AT, ASKED_AT + kept_s + 41, kept_s)


def test_connection_without_a_request_never_times_out() -> None:
    assert not USUAL.ends_fetch(0.0, ASKED_AT, 0.5)


@pytest.mark.parametrize(
    ("properties", "timeouts"),
    [
        ({}, Timeouts(opening_s=10, short_request_s=30, data_request_s=40)),
        ({ANSWERS: " 5000 "}, Timeouts(opening_s=10, short_request_s=5, data_request_s=5)),
        ({ANSWERS: "60000"}, Timeouts(opening_s=10, short_request_s=60, data_request_s=60)),
        ({OPENING: "2500"}, Timeouts(opening_s=2.5, short_request_s=30, data_request_s=40)),
        ({OPENING: "1", ANSWERS: "900000"}, Timeouts(opening_s=1, short_request_s=300, data_request_s=300)),
    ],
    ids=["neither", "shorter answers", "longer answers", "opening", "beyond the limits"],
)
def test_timeouts_follow_the_properties_within_limits(properties: dict[str, str], timeouts: Timeouts) -> None:
    assert timeouts_from(properties) == timeouts
    cluster = connect_cluster("a", {"bootstrap.servers": "broker:9092", **properties}, "test")
    assert cluster.timeouts == timeouts
    assert cluster._settings["opening_s"] == timeouts.opening_s


@pytest.mark.parametrize(("request_s", "replicas_s"), [(40.0, 30), (1.0, 0.75)])
def test_a_broker_has_time_left_to_say_that_its_replicas_did_not_answer(request_s: float, replicas_s: float) -> None:
    assert Timeouts(data_request_s=request_s).replicas == timedelta(seconds=replicas_s)
