"""Three clusters: a ring, a hub with spokes, one topic's name from two sources, one source to two targets, aliases with
dashes, a separator of two characters, two instances on one target (`mm2-behaviour.md` §2.1, §4.2, §7).

Three deployments for all of it, each of them topic-sync and the data plane with several flows: topics are copied from
hop to hop, and none ever comes home.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from lockstep_client import heartbeat_topics, replication_hops, upstream_clusters
from lockstep_state.names import Flow, service_group, state_topic
from tests.support.broker import Broker, started
from tests.support.clusters import Record, admin, create_topic, produce, read_topic, topic_names
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess
from tests.support.topic_comparison import compare

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WITHIN = 180.0
"""Seconds for what has to happen: some ten for Spark's start, one or two for each hop, more where cores are shared."""

SETTLED_ROUNDS = 3
PARTITIONS = 2
MARK = uuid.uuid4().hex[:6]
FACTORS = (
    *("replication.factor", "offset.storage.replication.factor", "heartbeats.topic.replication.factor"),
    "offset-syncs.topic.replication.factor",
)

until = partial(wait_until, within=WITHIN, every=0.25)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Sequence[str]]:
    """The addresses of three clusters."""
    three = [Broker(name) for name in "ABC"]
    with started(*three):
        yield [broker.bootstrap for broker in three]


def mirroring(folder: Path, at: dict[str, str], flows: Sequence[str], *lines: str) -> Mirror:
    """The services of `flows` between the clusters at these addresses, by alias."""
    file = folder / "mm2.properties"
    text = [
        f"clusters = {', '.join(at)}",
        *(f"{alias}.bootstrap.servers = {bootstrap}" for alias, bootstrap in at.items()),
        *(f"{factor} = 1" for factor in FACTORS),
        *(f"{flow}.enabled = true" for flow in flows),
        "tasks.max = 1",
        *lines,
    ]
    file.write_text("\n".join(text) + "\n")
    parsed = [Flow.parse(flow) for flow in flows]
    return Mirror(file, [MirroredFlow(flow, at[flow.source], at[flow.target]) for flow in parsed])


def write(bootstrap: str, topic: str, origin: str) -> None:
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    produce(bootstrap, topic, [Record(value=f"{origin} {n}".encode(), partition=n % PARTITIONS) for n in range(200)])


def copied(source: tuple[str, str], target: tuple[str, str]) -> None:
    """Returns once a topic, given as (address, name), holds what another one does."""

    def equal() -> bool:
        return target[1] in topic_names(target[0]) and compare(read_topic(*source), read_topic(*target)).equal

    until(equal, what=f"{target[1]} is a copy of {source[1]}")


def settle(mirror: Mirror) -> None:
    """Returns when topic-sync has looked at everything a few times more."""
    rounds = {name: _rounds(mirror, name) for name in mirror.flows}
    until(
        lambda: all(_rounds(mirror, name) >= before + SETTLED_ROUNDS for name, before in rounds.items()),
        what="some rounds more",
    )


def _rounds(mirror: Mirror, flow: str) -> float:
    copies = [
        float(line.rpartition(" ")[2])
        for line in mirror.topic_sync.page("/metrics")[1].splitlines()
        if line.startswith("lockstep_rounds_total{") and f'"{flow}"' in line and "topic refresh" in line
    ]
    return sum(copies)


# -- renamed: a ring, and a hub with spokes ----------------------------------------------------------------------------

RING = ("A", "B", "C")
HUB, SPOKES = "hub", ("us-east", "eu-west")
RING_TOPIC, HUB_TOPIC = "ring", "spoke"


class Renamed:
    """A -> B -> C -> A, and each of two spokes with the hub both ways. All six have a topic of the same name."""

    def __init__(self, folder: Path, brokers: Sequence[str]) -> None:
        self.ring = dict(zip(RING, brokers, strict=True))
        self.hub = dict(zip((HUB, *SPOKES), brokers, strict=True))
        ways = [f"{a}->{b}" for a, b in zip(RING, (*RING[1:], RING[0]), strict=True)]
        spoken = [f"{spoke}->{HUB}" for spoke in SPOKES] + [f"{HUB}->{spoke}" for spoke in SPOKES]
        self.mirror = mirroring(
            folder,
            self.ring | self.hub,
            [*ways, *spoken],
            *(rf"{flow}.topics = (.*\\.)?{RING_TOPIC}" for flow in ways),
            *(rf"{flow}.topics = (.*\\.)?{HUB_TOPIC}" for flow in spoken),
            "emit.heartbeats.enabled = false",
            *(f"{flow}.emit.heartbeats.enabled = true" for flow in ways),
            *(f"{flow}.heartbeats.replication.enabled = false" for flow in spoken),
        )
        self.ways = ways


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory, brokers: Sequence[str]) -> Iterator[Renamed]:
    there = Renamed(tmp_path_factory.mktemp("renamed"), brokers)
    for alias, bootstrap in there.ring.items():
        write(bootstrap, RING_TOPIC, alias)
    for alias, bootstrap in there.hub.items():
        write(bootstrap, HUB_TOPIC, alias)
    beats = ServiceProcess("lockstep_heartbeat", there.mirror.config, *there.ways)
    with there.mirror, beats:
        yield there


def test_ring_brings_each_topic_round_once(renamed: Renamed) -> None:
    for place, home in enumerate(RING):
        second, third = RING[(place + 1) % 3], RING[(place + 2) % 3]
        source = renamed.ring[home], RING_TOPIC
        copied(source, (renamed.ring[second], f"{home}.{RING_TOPIC}"))
        copied(source, (renamed.ring[third], f"{second}.{home}.{RING_TOPIC}"))
    settle(renamed.mirror)
    for place, home in enumerate(RING):
        before, first = RING[place - 1], RING[place - 2]
        copies = {name for name in topic_names(renamed.ring[home]) if name.split(".")[-1] == RING_TOPIC}
        assert copies == {RING_TOPIC, f"{before}.{RING_TOPIC}", f"{before}.{first}.{RING_TOPIC}"}, home


def test_heartbeats_in_a_ring_give_upstream_clusters_and_hops(renamed: Renamed) -> None:
    for place, home in enumerate(RING):
        before, first = RING[place - 1], RING[place - 2]
        conf = {"bootstrap.servers": renamed.ring[home]}
        wanted = {"heartbeats", f"{before}.heartbeats", f"{before}.{first}.heartbeats"}
        until(partial(_has_beats, conf, wanted), what=f"heartbeats on {home}")
        assert upstream_clusters(conf) == {before, first}
        assert [replication_hops(conf, alias) for alias in (before, first, home)] == [1, 2, None]
        chains = {tuple(topic.split(".")[:-1]) for topic in heartbeat_topics(conf)}
        assert not any(home in chain for chain in chains), chains


def _has_beats(conf: dict[str, str], wanted: set[str]) -> bool:
    return wanted <= heartbeat_topics(conf)


def test_mm2_167_hub_has_a_topic_of_two_spokes_and_gives_each_to_the_other(renamed: Renamed) -> None:
    hub = renamed.hub[HUB]
    for spoke, other in permutations(SPOKES):
        source = renamed.hub[spoke], HUB_TOPIC
        copied(source, (hub, f"{spoke}.{HUB_TOPIC}"))
        copied(source, (renamed.hub[other], f"{HUB}.{spoke}.{HUB_TOPIC}"))
        copied((hub, HUB_TOPIC), (renamed.hub[spoke], f"{HUB}.{HUB_TOPIC}"))
    settle(renamed.mirror)
    for home, bootstrap in renamed.hub.items():
        copies = {name for name in topic_names(bootstrap) if name.split(".")[-1] == HUB_TOPIC}
        others = [spoke for spoke in SPOKES if spoke != home]
        through = {f"{spoke}.{HUB_TOPIC}" for spoke in others}
        assert copies - {HUB_TOPIC} == (through if home == HUB else {f"{HUB}.{name}" for name in (HUB_TOPIC, *through)})


# -- a separator of two characters, and one source to two targets under the same names ---------------------------------


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory, brokers: Sequence[str]) -> Iterator[Mirror]:
    """D -> E -> F with the separator `__`, and from one source to two targets under the same names."""
    at = dict(zip(("D", "E", "F"), brokers, strict=True)) | dict(zip(("from", "to-1", "to-2"), brokers, strict=True))
    renamed, same = ("D->E", "E->F", "F->D"), ("from->to-1", "from->to-2")
    lines = [f"{flow}.topics = (.*__)?under_scored" for flow in renamed]
    lines += [f"{flow}.replication.policy.separator = __" for flow in renamed]
    lines += [f"{flow}.topics = fanned-out" for flow in same]
    lines += [
        f"{flow}.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy" for flow in same
    ]
    quiet = "emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false"
    for topic in ("under_scored", "fanned-out"):
        write(brokers[0], topic, "first")
    with mirroring(tmp_path_factory.mktemp("others"), at, [*renamed, *same], *lines, *quiet) as mirror:
        yield mirror


def test_a_separator_of_two_characters_leads_from_hop_to_hop(others: Mirror, brokers: Sequence[str]) -> None:
    source = brokers[0], "under_scored"
    copied(source, (brokers[1], "D__under_scored"))
    copied(source, (brokers[2], "E__D__under_scored"))
    settle(others)
    assert {name for name in topic_names(brokers[0]) if "under_scored" in name} == {"under_scored"}


def test_source_feeds_two_targets_under_the_same_name(others: Mirror, brokers: Sequence[str]) -> None:
    for target in brokers[1:]:
        copied((brokers[0], "fanned-out"), (target, "fanned-out"))
    settle(others)
    assert not others.flow.events("PartitionHalted")


# -- two instances on one target ---------------------------------------------------------------------------------------


def test_instances_of_one_flow_are_separate_by_their_group_id(tmp_path: Path, brokers: Sequence[str]) -> None:
    """Each with topics of its own, and control topics and groups of its own on the one target."""
    a, b = brokers[:2]
    flow = Flow("G", "H")
    with ExitStack() as stack:
        for instance in ("one", "two"):
            write(a, f"{instance}-orders", instance)
            folder = tmp_path / instance
            folder.mkdir()
            lines = (
                f"topics = {instance}-.*",
                f"{flow.target}.group.id = {instance}",
                "heartbeats.replication.enabled = false",
            )
            stack.enter_context(mirroring(folder, {"G": a, "H": b}, [str(flow)], *lines))
        for instance in ("one", "two"):
            copied((a, f"{instance}-orders"), (b, f"G.{instance}-orders"))
            until(partial(read_so_far, b, state_topic(flow, instance)))
        assert not read_so_far(b, state_topic(flow))
        client = admin(b)
        groups = {group.group_id for group in client.list_consumer_groups().result(20).valid}
        for service in ("topic-sync", "data-plane"):
            assert {service_group(service, flow, instance) for instance in ("one", "two")} <= groups
        for instance, other in permutations(("one", "two")):
            rows = {record.key for record in read_so_far(b, state_topic(flow, instance))}
            assert f"topic/{instance}-orders".encode() in rows
            assert f"topic/{other}-orders".encode() not in rows
