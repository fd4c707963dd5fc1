"""Whatever fails, `lockstep status` and /metrics say no less than what a reader of the target lacks.
SEED gives other moments, MOMENTS more of them. Faults strike at proxies, so the test can read both clusters throughout.
"""

import json
import os
import random
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lockstep_cli.commands.status import command
from tests.faults.deployment import PARTITIONS, Deployment, one_broker_each
from tests.faults.numbered import Writer, read_numbers
from tests.faults.scene import Scene
from tests.support.clusters import delete_topic, end_offsets
from tests.support.eventually import wait_until
from tests.support.metrics import read_page

Ends = Mapping[int, int]

TOPIC, COPY = "fault-told", "A.fault-told"
MORE: Mapping[str, Any] = {"A->B.lockstep.on.recreate": "restart"}
SAID = {f"{page_name} {what}" for page_name in ("status", "/metrics") for what in ("behind", "unknown")}
MORE_ROUNDS = 1
SEEN_S = 21.0
"""/metrics shows what was seen 10 s before, and waits for the next look 10 s. `status` knows a dead slot after 15 s."""


class Watched:
    """A run under traffic; where both logs ended, from time to time; and how often each kind of answer was given."""

    def __init__(self, there: Deployment, stack: ExitStack) -> None:
        self.there, self.stack, self.first = there, stack, 0
        self.source: list[tuple[float, Ends]] = []
        self.target: list[tuple[float, Ends]] = []
        self.said: Counter[str] = Counter()

    def write(self) -> None:
        self.there.create(TOPIC)
        at, log, self.first = self.there.source.bootstrap, self.there.folder / "writer.log", self.first + 10**9
        self.stack.enter_context(Writer(at, TOPIC, partitions=PARTITIONS, rate=200, log=log, first=self.first))

    def write_anew(self) -> None:
        self.stack.close()
        delete_topic(self.there.source.bootstrap, TOPIC)
        self.source.clear()
        self.write()

    def wait(self, seconds: float = 0.0) -> None:
        until = time.monotonic() + seconds
        while True:
            self.source.append((time.monotonic(), end_offsets(self.there.source.bootstrap, TOPIC)))
            self.target.append((time.monotonic(), end_offsets(self.there.target_bootstrap, COPY)))
            if time.monotonic() >= until:
                return
            time.sleep(0.5)

    def compare_once(self, when: str) -> None:
        """Hold both against what the target has afterwards."""
        self.wait()
        self._hold(f"{when}: /metrics", _gauges(self.there), _last(self.source, time.monotonic() - SEEN_S))
        self.wait()
        (_, ends), before = self.source[-1], _last(self.target, time.monotonic() - SEEN_S)
        flow = _status(self.there)
        lags = {line["partition"]: line["lag_records"] for line in flow.get("partitions", ()) if line["topic"] == TOPIC}
        lacking = self._hold(f"{when}: status", lags, ends)
        self.wait()
        if flow["fine"]:
            still = [number for number, end in before.items() if lacking[number] and self.target[-1][1][number] == end]
            assert not still, f"{when}: fine, and partitions {still} do not copy: {flow}"

    def _hold(self, page_name: str, lags: Mapping[int, float | None], ends: Ends) -> Ends:
        """How many records below the ends nobody can read on the target, by partition: the least to be shown."""
        copy = read_numbers(self.there.target_bootstrap, COPY)
        log = read_numbers(self.there.source.bootstrap, TOPIC)
        lacking = {number: len({*log[number][:end]} - {*copy[number]}) for number, end in ends.items()}
        print(f"{page_name}: {dict(lags)}, lacking at least {lacking}")  # noqa: T201 - pytest shows it
        for number, lack in lacking.items():
            lag = lags.get(number)
            assert lag is None or lag >= lack, f"{page_name}: {number} lacks {lack} records and is shown {lag} behind"
            self.said[page_name.rpartition(" ")[2] + (" unknown" if lag is None else " behind" if lag else " 0")] += 1
        return lacking

    def at_rest(self) -> bool:
        flow = _status(self.there)
        assert (flow["fine"], flow["lag_records"]) == (True, 0), flow
        assert _gauges(self.there) == dict.fromkeys(range(PARTITIONS), 0.0)
        return True


def _last(samples: list[tuple[float, Ends]], at: float) -> Ends:
    return next((ends for taken, ends in reversed(samples) if taken <= at), {})


def _status(there: Deployment) -> dict[str, Any]:
    asked = [str(there.folder / "mm2.properties"), "--output", "json", "--timeout", "4"]
    (flow,) = json.loads(CliRunner().invoke(command, asked, catch_exceptions=False).stdout)["flows"]
    return dict(flow)


def _gauges(there: Deployment) -> dict[int, float]:
    address = re.findall(r"data-plane +started .* pages at (http://\S+)", there.run.log.read_text())[-1]
    try:
        with urllib.request.urlopen(f"{address}/metrics", timeout=5.0) as answer:  # noqa: S310 - our own address
            page = read_page(answer.read().decode())
    except OSError:
        return {}
    return {
        int(labels["partition"]): lag
        for labels, lag in page.get("lockstep_lag_records", [])
        if labels["topic"] == TOPIC
    }


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_status_lag_is_at_least_what_a_reader_of_the_target_lacks(tmp_path: Path) -> None:
    seed, moments = int(os.environ.get("SEED") or random.randrange(10**6)), int(os.environ.get("MOMENTS") or 10)
    print(f"SEED={seed}")  # noqa: T201 - pytest shows it with the failure
    dice = random.Random(seed)
    with one_broker_each(tmp_path, tmp_path / "run.log", **MORE) as there, ExitStack() as stack:
        watched, source, target = Watched(there, stack), there.source.proxy, there.target.proxy
        assert source and target  # noqa: PT018 - both have one
        strikes: Mapping[str, Callable[[], None]] = {
            "JVM killed": lambda: Scene(there, TOPIC, dice, print).kill("JVM"),
            "source frozen": source.hold,
            "source away": source.refuse,
            "target away": target.refuse,
            "topic created anew": watched.write_anew,
        }
        watched.write()
        there.goes_on(TOPIC)
        order = dice.sample([*strikes], len(strikes))
        needed = order * -(-moments // (3 * len(strikes)))
        # Which answers come depends on the seconds: more strikes follow until each was given.
        for number, name in enumerate((*needed, *order * MORE_ROUNDS)):
            if number >= len(needed) and watched.said.keys() >= SAID:
                break
            strikes[name]()
            for _ in range(2):
                watched.wait(dice.uniform(0.0, 10.0))
                watched.compare_once(name)
            there.heal()
            watched.wait(dice.uniform(0.0, 4.0))
            watched.compare_once(f"after {name}")
        stack.close()
        wait_until(watched.at_rest, within=120, every=1.0, what="at rest both say 0, and fine")
        assert watched.said.keys() >= SAID, watched.said
