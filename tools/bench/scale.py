"""A flow of 10,000 partitions in 50 slots, as far as one machine can say something of it.

Three parts that do not depend on each other: the driver's planning, the traffic of the state topic, and slots on a
Spark cluster. One that fails is shown as failed beside the figures of the others.
"""

from collections.abc import Mapping
from functools import partial

from lockstep_data_plane.driver.load_balancer import assign
from tools.bench.figures import OURS
from tools.bench.modelled_fleet import ModelledFleet
from tools.bench.outcome import Failed, Scalar
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.scale_planning import ADDED_TOPICS, measure_planning
from tools.bench.spark_spread import PARTITIONS as SPREAD_PARTITIONS
from tools.bench.spark_spread import WORKERS, measure_spread
from tools.bench.stage import Stage
from tools.bench.state_traffic import measure_traffic

SCALE = "scale"
PARTITIONS, SLOTS, BYTES_PER_S = 10_000, 50, 500e6

Measured = tuple[dict[str, float], list[str]]
"""Figures by key, and notes about them."""


def scale(stage: Stage) -> ReadingsPart:
    """Lockstep alone."""
    fleet = ModelledFleet.modelled(PARTITIONS, BYTES_PER_S)
    held = assign(fleet.partitions, SLOTS, {})
    found: dict[str, Measured | Failed] = {}
    for system in stage.ours:
        measures = {
            "planning": partial(measure_planning, stage.work, fleet, SLOTS),
            "state topic": partial(measure_traffic, stage, fleet, held),
            "Spark cluster": partial(measure_spread, stage, system),
        }
        found |= {name: stage.attempt(SCALE, name, "", measure) for name, measure in measures.items()}
    facts: dict[str, Scalar] = {
        "partitions": PARTITIONS,
        "slots": SLOTS,
        "added_topics": ADDED_TOPICS,
        "workers": WORKERS,
        "partitions_of_the_cluster": SPREAD_PARTITIONS,
    }
    return ReadingsPart(name=SCALE, facts=facts, systems=merged(found))


def merged(found: Mapping[str, Measured | Failed]) -> Mapping[str, Readings | Failed]:
    """One column with all that was measured, and one for each part that failed."""
    measured = [one for one in found.values() if not isinstance(one, Failed)]
    failed = {name: one for name, one in found.items() if isinstance(one, Failed)}
    if not measured:
        return failed
    values = {key: value for figures, _ in measured for key, value in figures.items()}
    return {OURS: Readings(values=values, notes=[note for _, notes in measured for note in notes]), **failed}
