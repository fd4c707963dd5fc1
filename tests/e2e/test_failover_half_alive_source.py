"""The source is half alive: its brokers answer some questions only, or one of two is dead. A failover ends as without
it, and says what is not known."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import admin, wait_for_brokers
from tests.support.failover_kills import KILLS, LOSES, doubled_records, unsaid_loss
from tests.support.proxy import Proxy
from tests.support.switch_scene import SwitchScene

pytestmark = pytest.mark.long

METADATA, API_VERSIONS, LIST_OFFSETS = 3, 18, 2
"""Keys of Kafka's protocol."""


@pytest.mark.parametrize("killed", ["nothing", "slots"])
@pytest.mark.parametrize("answered", [(), (LIST_OFFSETS,)], ids=["metadata", "ends"])
def test_failover_from_a_source_that_answers_some_questions_ends(
    tmp_path: Path, killed: str, answered: tuple[int, ...]
) -> None:
    with Proxy() as proxy:
        a, b = Broker("A", behind=proxy), Broker("B")
        with started(a, b):
            scene = SwitchScene(tmp_path, a, b, hooks=False, source_address=proxy.bootstrap)
            with scene.running():
                scene.app.go_on()
                proxy.answer_only(API_VERSIONS, METADATA, *answered)
                KILLS[killed](scene)
                scene.app.abandon()
                # A source that says where all of its logs end may be alive: then the operator has to know better.
                allowed = (*LOSES, "--allow-not-ready") if answered else LOSES
                looked = scene.switch("failover", "--dry-run", *allowed)
                assert looked["source_known_until"], looked
                done = scene.switch("failover", *allowed)
                assert done["phase"] == "done", done
                scene.wait_released()
                proxy.heal()
                assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done


@contextmanager
def two_nodes() -> Iterator[tuple[Broker, Broker]]:
    """A cluster of two brokers. Each leads some partitions of a topic."""
    quorum = Quorum.with_nodes(2)
    first, second = (Broker(f"A{node}", quorum=quorum, node=node) for node in (1, 2))
    with started(first, second):
        wait_for_brokers(first.bootstrap, 2)
        yield first, second


def led_by(broker: Broker, scene: SwitchScene) -> int:
    """Return how many partitions of A's topics a broker leads."""
    topics = admin(broker.bootstrap).list_topics(timeout=10).topics
    return sum(one.leader == broker.node for topic in scene.topics for one in topics[topic].partitions.values())


@pytest.mark.parametrize("killed", ["nothing", "slots"])
def test_failover_from_a_source_with_a_dead_broker_ends(tmp_path: Path, killed: str) -> None:
    with ExitStack() as stack:
        first, second = stack.enter_context(two_nodes())
        b = Broker("B")
        stack.enter_context(started(b))
        address = f"{first.bootstrap},{second.bootstrap}"
        scene = SwitchScene(tmp_path, first, b, hooks=False, source_address=address)
        with scene.running():
            scene.app.go_on()
            silent = led_by(second, scene)
            assert 0 < silent < 6
            second.kill()
            KILLS[killed](scene)
            scene.app.abandon()
            looked = scene.switch("failover", "--dry-run", *LOSES)
            assert f"does not answer about {silent} of 6 partitions" in looked["said"], looked
            done = scene.switch("failover", *LOSES)
            assert done["phase"] == "done", done
            scene.wait_released()
            second.start()
            assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done
