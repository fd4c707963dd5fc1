"""All parts of the bench, by name, in the order in which they run."""

from collections.abc import Mapping

from tools.bench import arriving, control, latency, outages, resting, scale, switching, throughput, verifying
from tools.bench.stage import Part

ALL = (
    *(*throughput.PARTS, *latency.PARTS, resting.STARTUP, *verifying.PARTS, *outages.PARTS, *switching.PARTS),
    *(*scale.PARTS, *resting.PARTS, *arriving.PARTS, *control.PARTS),
)
PARTS: Mapping[str, Part] = {part.name: part for part in ALL}
BY_DEFAULT = tuple(name for name, part in PARTS.items() if part.by_default)
