"""How fast copies are compared with their source, at each depth, and at what cost."""

import time
from collections.abc import Callable
from pathlib import Path

from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import Verification, VerifiedPartition
from tests.support.eventually import NeverHappened, wait_until
from tests.support.mirror import MirroredFlow
from tools.bench.readings import Readings
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.throughput import Workload
from tools.bench.wire import ends_everywhere, to_each

WITHIN_S = 300.0
DEPTHS = ("bytes", "crc", "record")
SLOTS = 2
SETTINGS = {"lockstep.verify.tasks.max": str(SLOTS)}


def verifying(work: Workload, say: Callable[[str], None], system: System, file: Path, log: Path) -> Readings:
    """Copy a topic, then have it compared as a whole at each depth. Raises SystemEnded."""
    flow = MirroredFlow(Flow("A", "B"), work.clusters.source, work.clusters.target)
    values: dict[str, float] = {}
    with SystemRun(system, file, log) as run, to_each(work.clusters.target) as target:
        try:
            wait_until(
                lambda: sum(ends_everywhere(target, work.remote, work.partitions)) >= work.loaded.records,
                within=WITHIN_S,
            )
            flow.wait_written_down(work.topic)
            for depth in DEPTHS:
                say(f"verify: {depth}")
                values |= _compared(flow, work, run, depth)
        except NeverHappened as never:
            raise SystemEnded(f"not compared within {WITHIN_S:.0f} s: {never}") from never
    values["record_to_bytes_cpu"] = values["record_cpu_s_per_million"] / values["bytes_cpu_s_per_million"]
    return Readings(values=values, log=log.name)


def _compared(flow: MirroredFlow, work: Workload, run: SystemRun, depth: str) -> dict[str, float]:
    """One request, from its answer to its end."""
    time.sleep(2.0)  # what the copy or the request before has left to write
    before = run.use()
    answer = flow.ask("verify", f"topic:{work.topic}", depth=depth, again=True)
    if answer.kind != "VerificationStarted":
        raise SystemEnded(f"the request was answered by {answer}")

    def ended() -> bool:
        run.check()
        request = flow.rows(Verification)
        return bool(request) and request[0].id == answer.answers and request[0].phase == "ended"

    wait_until(ended, within=WITHIN_S, every=0.5, what=f"compared by {depth}")
    cpu = run.use().since(before).total
    rows = sorted(
        (row for row in flow.rows(VerifiedPartition) if row.topic == work.topic), key=lambda row: row.partition
    )
    records = sum(row.records for row in rows)
    wrong = [row for row in rows if row.differences or row.not_verified or row.reason]
    if records != work.loaded.records or wrong:
        raise SystemEnded(f"{records} of {work.loaded.records} records are equal; {wrong[:1]}")
    busy_s = max(sum(row.busy_ms for row in rows[slot::SLOTS]) / 1e3 for slot in range(SLOTS))
    return {f"{depth}_records_per_s": records / busy_s, f"{depth}_cpu_s_per_million": cpu * 1e6 / records}
