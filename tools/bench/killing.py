"""Records lost and doubled where a system is killed under way: that fault of `tests.faults`, for MM2 as well."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.deployment import one_broker_each
from tests.faults.killing import killed_and_started_while_paced
from tests.faults.striking import PACED
from tests.faults.suite import strike
from tools.bench.figures import OURS
from tools.bench.outcome import Scalar
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.stage import Stage
from tools.bench.systems import System, SystemEnded

KILLS = "kills"
TUNED = "mm2_tuned"
SEES_TOPICS = {"refresh.topics.interval.seconds": "5"}
"""The topic is made after MM2 has started, which looks for new ones every ten minutes."""
SETTLED_S = 20.0
"""Of a copy in which records are doubled: it is as long as the source before all is in it, so what tells is that it
has stopped to grow."""


def killed(systems: Sequence[System]) -> Sequence[System]:
    """Those this is asked of, in their order: MM2 as shipped copies no 100,000 records a second everywhere."""
    return [system for system in systems if system.name in (OURS, TUNED)]


def kills(stage: Stage) -> ReadingsPart:
    """Each on clusters of its own, killed at the same moments."""
    facts: dict[str, Scalar] = {"per_s": PACED.rate, "seed": stage.seed}
    systems = {
        system.name: stage.attempt(KILLS, system.name, _log(stage, system).name, partial(_struck, stage, system))
        for system in killed(stage.systems)
    }
    return ReadingsPart(name=KILLS, facts=facts, systems=systems)


def _struck(stage: Stage, system: System) -> Readings:
    """Raises SystemEnded when it did not come back."""
    ours = system.name == OURS
    fault = PACED if ours else replace(PACED, strike=killed_and_started_while_paced)
    log = _log(stage, system)
    with (
        TemporaryDirectory(prefix=f"lockstep-{KILLS}-", dir=stage.work) as folder,
        one_broker_each(Path(folder), log, system, **({} if ours else SEES_TOPICS)) as there,
    ):
        if not ours:
            there.settled_s = SETTLED_S
        outcome = strike(there, fault, stage.seed, stage.say)
    found = outcome.count
    if outcome.failed:
        raise SystemEnded(f"{outcome.failed}; of {found.records} {found.lost} lost, {found.doubled} doubled")
    return Readings(
        values={
            "lost": found.lost,
            "doubled": found.doubled,
            "displaced": found.displaced,
            "records": found.records,
            "kills": outcome.times,
        },
        log=log.name,
    )


def _log(stage: Stage, system: System) -> Path:
    return stage.logs() / f"{KILLS}-{system.name}.log"
