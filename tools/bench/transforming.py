"""What renames, header filters and statements cost: one topic copied in the ways of `parts.toml`, and by MM2.

All that is left of the records is compared with what Python makes of the source.
"""

import hmac
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from tests.support.clusters import Headers
from tools.bench.compare import Content, content
from tools.bench.copying import copy
from tools.bench.latency import course_of, latency, warm
from tools.bench.orders import POOL, Orders, load
from tools.bench.results import OURS, Failed, Readings
from tools.bench.stage import PARTITIONS, Measured, Stage

TRANSFORMS, BESIDE = "transforms", "orders-beside"
TOPIC, PER_S = f"orders-{TRANSFORMS}", 500
SHARE, BESIDE_SHARE = 3, 100  # of the records of other parts the topic has a third, and the one beside it a hundredth
LEAST_CENTS, SALT = 12_600, b"pepper"
NUMBER_AT, NAME_IN = slice(13, 25), b'"name":"'  # the first name of an order is its customer's

BODIES = [json.loads(f"{{{body}}}") for body in Orders.drawn().bodies]
HEADERS: tuple[Headers, Headers] = ((("internal", b"1"),), ())
KEEPS: Mapping[str, Callable[[int], bool]] = {
    "all": lambda number: True,
    "plain": lambda number: not HEADERS[number // PARTITIONS % 2],
    "dear": lambda number: BODIES[number % POOL]["items"][0]["price_cents"] > LEAST_CENTS,
}
"""Whether an order is kept, by its number. Of each partition every second one has headers and is not plain."""
DIGESTS: Mapping[str, Callable[[bytes], str]] = {
    "sha2": lambda name: sha256(name).hexdigest(),
    "salted": lambda name: hmac.new(SALT, name, sha256).hexdigest(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to copy the topic: which orders are kept, and what becomes of the customer's name in them."""

    system: str = OURS
    remote: str = f"A.{TOPIC}"
    keeps: str = "all"
    digest: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def made(self, message: Message) -> Content | None:
        """Return what a record of the source is on the target; None: it is left out."""
        key, value, *others = content(message)
        if not KEEPS[self.keeps](int(value[NUMBER_AT])):
            return None
        if self.digest:
            before, _, after = value.partition(NAME_IN)
            name, _, rest = after.partition(b'"')
            value = before + NAME_IN + DIGESTS[self.digest](name).encode() + b'"' + rest
        return (key, value, *others)


DECLARED = tomllib.loads(Path(__file__).with_name("parts.toml").read_text())
WAYS, LATE = ({name: Way(**way) for name, way in DECLARED[kind].items()} for kind in ("ways", "late"))


def _measure(stage: Stage) -> Measured:
    os.environ["BENCH_SALT"] = SALT.decode()  # the statement's secret refers to it
    stage = replace(stage, records=max(2 * PARTITIONS, stage.records // SHARE))
    whole = stage.loaded(TRANSFORMS, headers_of=lambda number: HEADERS[number // PARTITIONS % 2])
    whole = replace(whole, gaps=True, beside=[BESIDE])
    stage.clusters.create(stage.clusters.source, BESIDE, PARTITIONS)
    load(stage.clusters.source, BESIDE, records=stage.records // BESIDE_SHARE, partitions=PARTITIONS)
    measured: dict[str, Readings | Failed] = {}

    def measure(name: str, way: Way, copies: Callable[..., Readings], **how: Any) -> None:
        systems = [system for system in stage.systems if system.name == way.system]
        how |= {"systems": systems, "settings": way.settings, "called": f"{TRANSFORMS}-{name}"}
        for readings in stage.each(f"{TRANSFORMS}, {name}", TOPIC, copies, **how).values():
            measured[name] = readings

    for name, way in WAYS.items():
        kept = sum(map(KEEPS[way.keeps], range(stage.records)))
        loaded = replace(whole.loaded, records=kept)
        work = replace(whole, loaded=loaded, read=stage.records / kept, made=way.made, copied_to=way.remote)
        measure(name, way, partial(copy, work), keep=[TOPIC, BESIDE], codec=work.codec)
    course = course_of(stage, TOPIC, PER_S)
    warm(stage, course)
    for name, way in LATE.items():
        measure(name, way, partial(latency, course), before=partial(stage.fresh, TOPIC))
    return {**whole.facts, "per_s": PER_S}, measured


MEASURES = {TRANSFORMS: _measure}
