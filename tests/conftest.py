"""Two real Kafka clusters, A and B, started once for the whole run and shared by every test that asks for them.

Tests keep apart by topic names (`topic_name`), not by brokers. A test that stops a broker, or needs special settings,
makes a `tests.support.broker.Broker` of its own.
"""

import os
import signal
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from tests.support.broker import Broker, started, two_brokers
from tests.support.clusters import unique_name
from tests.support.guarded import GuardedBroker
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.services import two_cluster_file

# A shell starts what runs in the background with SIGINT ignored, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Spark and MirrorMaker live for seconds here, and half of what their JVMs do in them is to compile: one compiler is
# enough for that.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
os.environ.setdefault("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True)
class Pair:
    """Both clusters."""

    a: Broker
    b: Broker


@dataclass(frozen=True, slots=True)
class GuardedPair(Pair):
    """Each with a proxy in front. ACLs are kept and listed, and deny only users who log in."""

    a: GuardedBroker
    b: GuardedBroker


@pytest.fixture(scope="session")
def pair() -> Iterator[GuardedPair]:
    with ExitStack() as stack:
        before_a, before_b = stack.enter_context(Proxy()), stack.enter_context(Proxy())
        a, b = GuardedBroker("A", behind=before_a), GuardedBroker("B", behind=before_b)
        stack.enter_context(started(a, b))
        yield GuardedPair(a, b)


@pytest.fixture(scope="session")
def broker_a(pair: Pair) -> Broker:
    return pair.a


@pytest.fixture(scope="session")
def broker_b(pair: Pair) -> Broker:
    return pair.b


@pytest.fixture
def proxy_a(broker_a: Broker) -> Iterator[Proxy]:
    """In front of A for clients that bootstrap from it; restored after the test."""
    assert broker_a.proxy is not None
    yield broker_a.proxy
    broker_a.proxy.restore()


@pytest.fixture
def proxy_b(broker_b: Broker) -> Iterator[Proxy]:
    """In front of B for clients that bootstrap from it; restored after the test."""
    assert broker_b.proxy is not None
    yield broker_b.proxy
    broker_b.proxy.restore()


@pytest.fixture
def brokers() -> Iterator[tuple[Broker, Broker]]:
    """Two clusters of the test's own, which it may stop."""
    with two_brokers() as brokers:
        yield brokers


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name no other test uses, with the test's own in it."""
    return unique_name(request.node.originalname.removeprefix("test_")[:60])


MARK = uuid.uuid4().hex[:6]


@pytest.fixture(scope="session")
def mirror(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """topic-sync and the data plane between A and B, started once for the whole run: a flow each way, from A a second
    one that reads `read_committed`, and two that feed each other under the same names. Behind both proxies. Which
    topics a flow takes is said by `there`, `back`, `committed` and `same_names`. Nobody ends these processes; who needs
    that makes a `tests.support.mirror.Mirror` of its own.
    """
    assert pair.a.proxy is not None
    assert pair.b.proxy is not None
    there, back, committed = Flow(f"a{MARK}", f"b{MARK}"), Flow(f"b{MARK}", f"a{MARK}"), Flow(f"c{MARK}", f"b{MARK}")
    onward, backward = Flow(f"d{MARK}", f"e{MARK}"), Flow(f"e{MARK}", f"d{MARK}")
    # What tests set on the target stays as they set it.
    kept = r"message\\.timestamp\\..*, max\\.message\\.bytes, cleanup\\.policy, compression\\.type, segment\\.bytes"
    file = two_cluster_file(
        tmp_path_factory.mktemp("mirror"),
        (there.source, pair.a.proxy.bootstrap),
        (there.target, pair.b.proxy.bootstrap),
        f"clusters = {there.source}, {there.target}, {committed.source}, {onward.source}, {onward.target}",
        f"{committed.source}.bootstrap.servers = {pair.a.proxy.bootstrap}",
        f"{onward.source}.bootstrap.servers = {pair.a.proxy.bootstrap}",
        f"{onward.target}.bootstrap.servers = {pair.b.proxy.bootstrap}",
        *(f"{flow}.offset-syncs.topic.replication.factor = 1" for flow in (there, back, committed, onward)),
        "tasks.max = 1",
        f"{there}.enabled = true",
        f"{there}.tasks.max = 2",
        # Other tests mirror between these clusters under other aliases: heartbeats of heartbeats would never end.
        "heartbeats.replication.enabled = false",
        f"{there}.topics = there-.*",
        f"{there}.config.properties.exclude = {kept}",
        f"{there}.lockstep.on.gap = halt, there-skip.*=skip, there-restart.*=restart",
        f"{there}.lockstep.on.recreate = there-skip.*=skip, there-restart.*=restart",
        f"{there}.lockstep.on.refused = there-quarantine.*=quarantine",
        f"{there}.lockstep.on.doubt = there-doubt.*=progress",
        f"{there}.lockstep.max.bytes.per.second = there-slow.*=40000",
        f"{there}.lockstep.start.timestamp = there-dated.*=2023-11-14T22:13:20Z",
        f"{back}.enabled = true",
        f"{back}.topics = back-.*",
        f"{committed}.enabled = true",
        f"{committed}.topics = committed-.*",
        f"{committed}.consumer.isolation.level = read_committed",
        f"{committed}.offset.lag.max = 0",
        f"{committed}.offset-syncs.topic.location = target",
        # For who starts the checkpoint service beside them.
        "checkpoints.topic.replication.factor = 1",
        "groups = end-.*",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.interval.seconds = 1",
        f"{there}.sync.group.offsets.enabled = true",
        f"{committed}.sync.group.offsets.enabled = true",
        f"{backward}.emit.offset-syncs.enabled = false",
        *(
            f"{flow}.{line}"
            for flow in (onward, backward)
            for line in (
                "enabled = true",
                "topics = same-.*",
                "sync.topic.configs.interval.seconds = 1",
                "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            )
        ),
    )
    a, b = pair.a.bootstrap, pair.b.bootstrap
    flows = [MirroredFlow(there, a, b), MirroredFlow(back, b, a), MirroredFlow(committed, a, b)]
    flows += [MirroredFlow(onward, a, b), MirroredFlow(backward, b, a)]
    with Mirror(file, flows) as running:
        yield running


@pytest.fixture
def running(mirror: Mirror) -> Mirror:
    """The `mirror`, of which neither process has ended: else each test would wait long for what never comes."""
    ended = {service.module: service.ended for service in (mirror.topic_sync, mirror.data_plane) if not service.running}
    assert not ended, f"ended with {ended}, and every test behind it fails\n{mirror.said_last()}"
    return mirror


WITHOUT_BROKERS = ("unit", "chart")
RUNS_AGAIN = pytest.mark.flaky(reruns=1, only_rerun=["NeverHappened", "TimeoutExpired"])
"""A test with brokers runs once more if it waited in vain: all processes of both halves of `make test` share two cores.
What it compared and found different fails at once, and long tests run once. The summary names what ran again."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in WITHOUT_BROKERS and item.get_closest_marker("long") is None:
            item.add_marker(RUNS_AGAIN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What fails beside the `mirror` is shown with what that said last: it may be its fault."""
    report = yield
    mirror = getattr(item, "funcargs", {}).get("mirror")
    if report.failed and isinstance(mirror, Mirror):
        report.sections.append(("the mirror", mirror.said_last()))
    return report


@pytest.fixture
def there(running: Mirror) -> MirroredFlow:
    """A->B, for topics that begin with `there-`."""
    return next(iter(running.flows.values()))


@pytest.fixture
def back(running: Mirror) -> MirroredFlow:
    """B->A, for topics that begin with `back-`."""
    return list(running.flows.values())[1]


@pytest.fixture
def committed(running: Mirror) -> MirroredFlow:
    """A->B under read_committed, for topics that begin with `committed-`. Its offset syncs lie on B."""
    return list(running.flows.values())[2]


@pytest.fixture
def same_names(running: Mirror) -> tuple[MirroredFlow, MirroredFlow]:
    """A->B and B->A, for topics that begin with `same-`, which keep their names. The second writes no offset syncs."""
    onward, backward = list(running.flows.values())[3:]
    return onward, backward
