"""All parts of the bench, by name, in the order in which they run."""

from collections.abc import Mapping

from tools.bench import arriving, control, latency, outages, resting, scale, switching, throughput, verifying
from tools.bench.stage import Part

MODULES = (throughput, latency, verifying, outages, switching, scale, resting, arriving, control)
PARTS: Mapping[str, Part] = {part.name: part for module in MODULES for part in module.PARTS}
BY_DEFAULT = tuple(name for name, part in PARTS.items() if part.by_default)
