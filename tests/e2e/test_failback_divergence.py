"""What a failback answers about records that only one cluster has, while slots die: the true number, or that it is not
known. SEED gives other moments, ROUNDS more of them."""

import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.broker import two_brokers
from tests.support.clusters import Record, produce, read_topic
from tests.support.failover_kills import kill_slots
from tests.support.switch_scene import SwitchScene

pytestmark = pytest.mark.long

DRY_RUNS = 2
"""So often the command looks after each kill: at once, and when it has answered."""


@pytest.mark.parametrize("most_own", [pytest.param(0, id="copies"), pytest.param(40, id="own")])
def test_number_of_records_only_one_cluster_has_is_true_or_unknown(tmp_path: Path, most_own: int) -> None:
    """The same names on both sides: the log of A has copies that may be in no row yet, and maybe records of its own."""
    seed, rounds = int(os.environ.get("SEED") or random.randrange(10**6)), int(os.environ.get("ROUNDS") or 3)
    print(f"SEED={seed}", flush=True)  # noqa: T201 - pytest shows it with the failure
    dice = random.Random(seed)
    with two_brokers() as (a, b):
        scene = SwitchScene(tmp_path, a, b, identity=True, topics=1)
        with scene.running():
            scene.app.go_on()
            assert scene.switch("switchover")["phase"] == "done"
            answers: list[int | None] = []
            for _ in range(rounds):
                scene.app.go_on()
                time.sleep(dice.uniform(0.0, 3.0))
                write_on_source(scene, dice.randint(0, most_own))
                kill_slots(scene)
                for _ in range(DRY_RUNS):
                    refusals = scene.dry_run("failback", "--allow-soon")
                    (counted, is_bound), own = counted_records(refusals), own_records(scene)
                    print(f"own {own}, counted {counted}: {refusals}", flush=True)  # noqa: T201
                    assert counted is None or counted == own or (is_bound and counted > own), refusals
                    answers.append(counted)
            assert any(counted is not None for counted in answers), "nothing was ever known"
            scene.app.go_on()


def write_on_source(scene: SwitchScene, count: int) -> None:
    """Records of a producer that was not sent over. Nobody copies them: the flow from there is stopped."""
    (topic,) = scene.topics
    mark = time.monotonic_ns()
    produce(scene.a.bootstrap, topic, [Record(value=f"own {mark} {n}".encode(), partition=n % 3) for n in range(count)])


def own_records(scene: SwitchScene) -> int:
    """Return how many records A has and B lacks, by both logs."""
    (topic,) = scene.topics
    on_a, on_b = [{record.value for record in read_topic(broker.bootstrap, topic)} for broker in (scene.a, scene.b)]
    return len(on_a - on_b)


def counted_records(refusals: Sequence[str]) -> tuple[int | None, bool]:
    """Return the number that the command names, and whether it says "at most". None: it says that this is not known, or
    asks the logs nothing yet."""
    for refusal in refusals:
        if match := re.search(r" has (at most )?([\d,]+) records? that \S+ lacks: ", refusal):
            return int(match[2].replace(",", "")), match[1] is not None
    return None if refusals else 0, False
