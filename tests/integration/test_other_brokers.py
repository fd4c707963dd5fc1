"""The whole life of a flow from and to real brokers of other versions and kinds (`broker-versions.md`)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.broker_pairs import Brokers
from tests.support.eventually import wait_until
from tests.support.go_programs import find_go
from tests.support.whole_life import PARTITIONS, WITHIN, WholeLife

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PAIRS = [
    *(("2.1", "4.3"), ("2.4", "4.3"), ("2.7", "4.3"), ("kfake", "4.3")),
    *(("4.3", "2.7"), ("4.3", "2.4"), ("4.3", "2.1"), ("4.3", "kfake")),
]
FIRST, ALL = 1500, 5000


class Known(NamedTuple):
    """What is said of a broker: its kind, and the requests that it lacks as a source and as a target."""

    kind: str
    as_source: tuple[str, ...] = ()
    as_target: tuple[str, ...] = ()


OLD = ("Metadata 10",)
UNTIL_2_5 = (*OLD, "DescribeQuorum 1", "DescribeClientQuotas")
KNOWN = {
    "4.3": Known("Kafka 4.3"),
    "2.7": Known("Kafka 2.7", (*OLD, "DescribeQuorum 1"), ("DescribeProducers", *OLD, "DescribeQuorum 1")),
    "2.4": Known("Kafka 2.4", UNTIL_2_5, ("DescribeProducers", *UNTIL_2_5)),
    "2.1": Known(
        "Kafka 2.1",
        ("Metadata 10", "Metadata 8", "DescribeQuorum 1", "DescribeClientQuotas"),
        (
            *("DescribeProducers", "IncrementalAlterConfigs"),
            *("Metadata 10", "Metadata 8", "DescribeQuorum 1", "DescribeClientQuotas"),
        ),
    ),
    "kfake": Known("unknown", ("DescribeQuorum 1",), ("DescribeQuorum 1",)),
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(stack)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-to-{pair[1]}")
def test_whole_life_is_exact(pair: tuple[str, str], brokers: Brokers, tmp_path: Path) -> None:
    if "kfake" in pair and find_go() is None:
        pytest.skip("there is no Go to build kfake with, on PATH or where its archive unpacks it")
    source, target = pair
    life = WholeLife(tmp_path, brokers[source], brokers[target])
    life.create_topic()
    life.write(0, FIRST)
    old = life.write_old_formats() if source.startswith("2.") else ()
    check_before_the_start(life, *pair)
    with life.running() as run:
        life.mirrored.wait_mirrored(life.topic, partitions=PARTITIONS, within=WITHIN)
        with life.writing(FIRST, ALL - FIRST):
            wait_until(lambda: life.copied() >= FIRST, within=WITHIN, what="the copy is under way")
            life.kill_data_plane(run)
        committed = life.commit_half()
        life.wait_copied(life.topic, *old)
        assert life.copied() == ALL
        life.wait_group_moved(committed)
        check_status(life, *pair)
        switched = life.switch()
        assert [group["state"] for group in switched["groups"]] == ["exact"], switched["groups"]
        life.wait_copied(life.topic, *old)
        assert life.mirrored.events("GapFound") == []


def flow_of(said: dict[str, Any], life: WholeLife) -> dict[str, Any]:
    (flow,) = (flow for flow in said["flows"] if flow["flow"] == str(life.flow))
    return dict(flow)


def check_before_the_start(life: WholeLife, source: str, target: str) -> None:
    """`doctor` and `plan` name the kind of each cluster, and what it lacks."""
    _, said = life.answer("doctor")
    checks = [check for category in said["categories"] for check in category["checks"]]
    assert [check for check in checks if check["result"] == "failed"] == []
    kinds = {check["subject"]: check["detail"] for check in checks if check["code"] == "LD651"}
    for alias, broker in ((life.flow.source, source), (life.flow.target, target)):
        kind = KNOWN[broker].kind
        assert kinds[alias] == f"looks like {'no kind that Lockstep knows' if kind == 'unknown' else kind}"
    code, said = life.answer("plan")
    assert (code, said["summary"]["errors"]) == (0, 0), said["flows"][0]["hazards"]
    flow = flow_of(said, life)
    lacking = [detail for hazard in flow["hazards"] if hazard["code"] == "LS029" for detail in hazard["details"]]
    for name in ("DescribeProducers", "IncrementalAlterConfigs", "Metadata 10"):
        for alias, lacks in ((life.flow.source, KNOWN[source].as_source), (life.flow.target, KNOWN[target].as_target)):
            named = any(detail.startswith(f"{alias} (") and f"does not know {name}:" in detail for detail in lacking)
            assert named == (name in lacks), lacking


def check_status(life: WholeLife, source: str, target: str) -> None:
    """`status` is fine, and has a line for each cluster."""
    wanted = {
        life.flow.source: (KNOWN[source].kind, sorted(KNOWN[source].as_source)),
        life.flow.target: (KNOWN[target].kind, sorted(KNOWN[target].as_target)),
    }

    def is_said() -> bool:
        code, said = life.answer("status")
        flow = flow_of(said, life)
        assert (code, flow["fine"], flow["switch_ready"]) == (0, True, True), flow
        assert {one["alias"]: (one["product"], sorted(one["lacks"])) for one in flow["clusters"]} == wanted
        return True

    wait_until(is_said, within=WITHIN, every=1.0, what="status is fine")
