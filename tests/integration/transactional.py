"""A mirror whose flow copies in transactions, and what the tests of it share."""

from pathlib import Path

from lockstep_state.names import quarantine_topic
from tests.conftest import Pair
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, unique_name
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

SOON = 90.0
OF_NOW = {"message.timestamp.after.max.ms": "3600000"}
"""What a topic is given that is to refuse `LATE`."""
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
LATE = Record(key=b"k", value=b"late", headers=(("own", b"1"),), timestamp_ms=4_000_000_000_000)


def numbered(count: int, first: int = 0, partitions: int = 1) -> list[Record]:
    return [Record(key=b"k", value=b"%d %s" % (first + n, b"v" * 100), partition=n % partitions) for n in range(count)]


def transactional(
    folder: Path, pair: Pair, *lines: str, mark: str = "", enabled: str = "enabled", behind_proxies: bool = False
) -> Mirror:
    mark = mark or unique_name("t")
    a, b = ((broker.bootstrap, _way_to(broker, behind_proxies)) for broker in (pair.a, pair.b))
    return Mirror.one_flow(
        folder,
        mark,
        a,
        b,
        f"t{mark}.exactly.once.source.support = {enabled}",
        f"s{mark}.consumer.isolation.level = read_committed",
        f"s{mark}->t{mark}.config.properties.exclude = message\\\\.timestamp\\\\..*, max\\\\.message\\\\.bytes",
        *lines,
        slots=1,
    )


def _way_to(broker: Broker, behind_proxy: bool) -> str:
    if not behind_proxy:
        return broker.bootstrap
    assert broker.proxy is not None
    return broker.proxy.bootstrap


def topic_of(flow: MirroredFlow, stem: str, partitions: int = 1) -> str:
    return create_topic(flow.source, unique_name(f"{flow.flow.source.removeprefix('s')}-{stem}"), partitions=partitions)


def wait_committed(flow: MirroredFlow, topic: str, within: float = SOON) -> list[Record]:
    """Readers of committed records find each record of the source once, in order."""
    return flow.wait_copied(topic, isolation="read_committed", within=within)


def rest(flow: MirroredFlow, topic: str) -> None:
    """Returns once nothing of the topic is copied any more, until somebody resumes it."""
    flow.ask("pause", f"topic:{topic}")
    wait_until(lambda: {r.phase for r in flow.progress(topic).values()} == {"paused"}, within=SOON, what="it rests")


def topic_that_refuses(flow: MirroredFlow, stem: str, **configs: str) -> str:
    """A topic of the source whose copy refuses `LATE`, and what `configs` of the copy make it refuse."""
    topic = unique_name(f"{flow.flow.source.removeprefix('s')}-{stem}")
    create_topic(flow.target, flow.remote(topic), configs={**OF_NOW, **configs})
    return create_topic(flow.source, topic, configs=ANY_TIME)


def quarantined(flow: MirroredFlow, topic: str) -> list[Record]:
    """What is in the flow's quarantine of a topic, in its order."""
    kept = read_so_far(flow.target, quarantine_topic(flow.flow))
    return [r for r in kept if dict(r.headers)["lockstep.topic"] == topic.encode()]
