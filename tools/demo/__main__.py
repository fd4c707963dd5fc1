"""`python -m tools.demo [--duration 30] [--keep]`, which is `make demo`.

Exit code 0 only when everything held, 130 after Ctrl-C. On failure the folder with Lockstep's log stays and is named.
"""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from lockstep_state.names import state_topic
from tests.support import broker, processes
from tests.support.broker import BrokerDied
from tests.support.java import NoJava
from tests.support.kafka_jars import JarsUnavailable, WrongChecksum
from tools.bench.results import percentile
from tools.bench.wire import BrokerRefused
from tools.demo.play import DemoFailed, Play
from tools.demo.scene import FLOWS
from tools.demo.screen import Screen

INTERRUPTED = 130
FAILURES = (DemoFailed, BrokerDied, BrokerRefused, NoJava, JarsUnavailable, WrongChecksum, KafkaException, OSError)
PAGES = r"http://[0-9.]+:[0-9]+"


def arguments(given: Sequence[str], environ: Mapping[str, str]) -> argparse.Namespace:
    """Read the command line; what is not given there is taken from the environment, as make hands it on."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description="Mirror two real clusters, and prove it.")
    duration, keep = float(environ.get("DURATION") or 30.0), bool(environ.get("KEEP"))
    parser.add_argument("--duration", type=float, default=duration, metavar="SECONDS", help="of traffic (default: 30)")
    parser.add_argument("--keep", action="store_true", default=keep, help="leave everything running until Ctrl-C")
    return parser.parse_args(given)


def main() -> int:
    chosen = arguments(sys.argv[1:], os.environ)
    signal.signal(signal.SIGTERM, _end)
    folder = Path(tempfile.mkdtemp(prefix="lockstep-demo-"))
    code = 1
    try:
        with Screen() as screen:
            code = _perform(folder, screen, chosen)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        # The log is worth keeping when something went wrong, not when somebody had seen enough.
        if code in (0, INTERRUPTED):
            shutil.rmtree(folder)
        elif (folder / "lockstep.log").exists():
            sys.stderr.write(f"Lockstep's log: {folder / 'lockstep.log'}\n")
    return code


def _perform(folder: Path, screen: Screen, chosen: argparse.Namespace) -> int:
    try:
        broker.prepare(screen.say)
        with Play(folder, show=screen.show, say=screen.say) as play:
            findings = play.perform(chosen.duration)
            figures = _figures(play)
            if chosen.keep:
                screen.conclude(findings, figures)
                _leave_running(screen, play)
                findings, figures = [finding for finding in findings if not finding.held], []
            findings.append(play.end_lockstep())
            screen.conclude(findings, figures)
    except FAILURES as exc:
        screen.clear()
        sys.stderr.write(f"The demo failed: {exc or 'a cluster did not answer in time'}\n")
        if (folder / "lockstep.log").exists():
            sys.stderr.write(processes.tail(folder / "lockstep.log", 15) + "\n")
        return 1
    held = all(finding.held for finding in findings)
    screen.say("Everything held." if held else "Not everything held.")
    return 0 if held else 1


def _figures(play: Play) -> list[tuple[str, str]]:
    """Return what was measured, by name."""
    first, up = play.first_record_s, play.clusters_up_s
    start = f"{first:.1f} s (clusters and topics {up:.1f} s, Lockstep {first - up:.1f} s)"
    figures = [("cold start to the first mirrored record", start)]
    if play.latencies:
        p50, p99 = (percentile(sorted(play.latencies), share) for share in (0.50, 0.99))
        text = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(play.latencies):,} records"
        figures.append(("written here until read there", text))
    return figures


def _leave_running(screen: Screen, play: Play) -> None:
    a, b = play.bootstrap["A"], play.bootstrap["B"]
    state = state_topic(FLOWS[0])
    addresses = [line for line in play.log.read_text().splitlines() if "http://" in line]
    screen.say(
        "\n".join(
            [
                f"\nStill running, until Ctrl-C: clusters A at {a} and B at {b}, Lockstep between them.",
                f"  its configuration  {play.file}",
                f"  its log            {play.log}",
                f"  its console        {play.console}",
                *(f"  {line}" for line in addresses),
                "Try, with your own tools in another terminal:",
                f"  kcat -b {b} -t A.orders -C -o -3 -e",
                f"  kcat -b {b} -t {state} -C -e -K ' '",
                f"  echo hello | kcat -b {a} -t payments -P; kcat -b {b} -t A.payments -C -o -1 -e",
                *(f"  curl -s {address}/status" for address in re.findall(PAGES, " ".join(addresses))[:1]),
                "or, where there is no kcat, from this checkout:",
                "  .venv/bin/python -c "
                f"\"from tests.support.clusters import read_topic; print(read_topic('{b}', 'A.orders')[-1])\"",
            ]
        )
    )
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        screen.say("ending")


def _end(*_: object) -> None:
    raise KeyboardInterrupt  # the one way in which Python leaves every block in order


if __name__ == "__main__":
    sys.exit(main())
