"""All parts of the bench in the order in which they run: the declarations of `parts.toml`, and what measures each."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools.bench import arriving, control, latency, outages, resting, scale, switching, throughput, verifying
from tools.bench.results import Row
from tools.bench.stage import Measured, Part, Stage
from tools.bench.transforming import MEASURES as OF_TRANSFORMS

MEASURES: Mapping[str, Callable[[Stage], Measured]] = {
    **throughput.MEASURES,
    **latency.MEASURES,
    **verifying.MEASURES,
    **outages.MEASURES,
    **switching.MEASURES,
    **scale.MEASURES,
    **resting.MEASURES,
    **arriving.MEASURES,
    **control.MEASURES,
    **OF_TRANSFORMS,
}


def _declared() -> Iterator[Part]:
    file = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    for name, part in file["parts"].items():
        rows = part["rows"] if isinstance(part["rows"], list) else file["rows"][part["rows"]]
        yield Part(
            name=name,
            title=part["title"],
            rows=[Row(**row) for row in rows],
            notes=[file["notes"][note] for note in part.get("notes", ())],
            by_default=part.get("by_default", True),
            measure=MEASURES[name],
        )


PARTS: Mapping[str, Part] = {part.name: part for part in _declared()}
BY_DEFAULT = tuple(name for name, part in PARTS.items() if part.by_default)
