"""The whole life of a flow from and to real brokers of other versions and kinds (`broker-versions.md`)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.broker_pairs import Brokers
from tests.support.go_programs import find_go
from tests.support.whole_life import LifeCluster, WholeLife

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
    "2.4": Known("Kafka 2.4", (*UNTIL_2_5, "Fetch 12"), ("DescribeProducers", *UNTIL_2_5)),
    "2.1": Known(
        "Kafka 2.1",
        ("Fetch 12", "Metadata 10", "Metadata 9", "Metadata 8", "DescribeQuorum 1", "DescribeClientQuotas"),
        (
            *("DescribeProducers", "IncrementalAlterConfigs", "Produce 8"),
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
    life = WholeLife(
        tmp_path,
        expect(source, brokers, KNOWN[source].as_source),
        expect(target, brokers, KNOWN[target].as_target),
        transactions=True,
    )
    life.write(0, FIRST)
    if source.startswith("2."):
        life.write_old_formats()
    life.check_doctor()
    check_plan(life)
    with life.running() as run:
        life.copy_over_kill(run, FIRST, ALL)
        life.wait_fine()
        switched = life.switch_over()
        assert [group["state"] for group in switched["groups"]] == ["exact"], switched["groups"]
        assert life.mirrored.events("GapFound") == []


def expect(broker: str, brokers: Brokers, lacks: Sequence[str]) -> LifeCluster:
    at = brokers[broker].bootstrap
    return LifeCluster(bootstrap=at, address=at, product=KNOWN[broker].kind, lacks=frozenset(lacks))


def check_plan(life: WholeLife) -> None:
    """`plan` has no error, and names what each cluster lacks."""
    code, hazards = life.plan()
    assert code == 0, hazards
    lacking = hazards.get("LS029", ())
    for name in ("DescribeProducers", "IncrementalAlterConfigs", "Metadata 10"):
        for alias, cluster in life.clusters.items():
            named = any(detail.startswith(f"{alias} (") and f"does not know {name}:" in detail for detail in lacking)
            assert named == (name in cluster.lacks), lacking
