"""The table of `bench-figures.md`, from the recorded runs of the bench in `tools/bench/recorded.json`."""

from collections.abc import Iterable, Iterator, Mapping

from tools.bench import recorded
from tools.bench.parts import PARTS
from tools.bench.recorded import Run
from tools.bench.results import OURS, SHIPPED, TUNED, TWO_SLOTS, Row, Scalar
from tools.docs.pages import DOCS

PAGE = DOCS / "internals" / "bench-figures.md"
PEERS = (TUNED, SHIPPED)
WITH_MM2 = {name for name, part in PARTS.items() if any(row.to in PEERS for row in part.rows)}
"""Parts that compare Lockstep with MM2."""
NAMES = {TWO_SLOTS: "two slots", "floor": "no mirror", "both_at_once": "both at once"}
LEFT_OUT = ("fetch_only", "produce_only")
SHOWN = (
    *("records_per_s", "cpu_s_per_million", "brokers_cpu_s_per_million", "startup_s", "p50_ms", "p99_ms", "p99_9_ms"),
    *("cpu_share", "idle_rss_mib", "idle_cpu_share", "crc_records_per_s", "record_records_per_s", "records"),
    *("syncs_replayed_s", "syncs_java_s", "both_copies_after_s", "unplanned_lost", "plan_first_ms", "plan_lost_moved"),
    *("plan_lost_least", "imbalance_before", "imbalance_after", "metrics_page_ms", "state_rows_per_s"),
    "state_row_bytes",
)
"""Keys of figures that are shown although nothing is wanted of them. All others are in the file only."""
EMPTY = "-"


def blocks() -> Mapping[str, str]:
    """Return the table of the recorded runs."""
    return {"runs": figures(recorded.read())}


def figures(runs: Iterable[Run]) -> str:
    """Return a row for each run."""
    head = ["part", "figure", "Lockstep", "MM2 tuned", "MM2 as shipped", "ratio to tuned; as shipped", "beside", "run"]
    lines = [f"| {' | '.join(head)} |", "|---|---|---:|---:|---:|---|---|---|", *(_line(run) for run in runs)]
    return "\n".join(lines)


def _line(run: Run) -> str:
    rows = list(_rows(run))
    columns = (_cell(column) for column in zip(*rows, strict=True))
    ran = f"{run.date}<br>`{run.commit}`<br>{run.machine}<br>`{run.command}`"
    return f"| `{run.part}` | {' | '.join(columns)} | {ran} |"


def _cell(lines: tuple[str, ...]) -> str:
    return "<br>".join(lines) if any(line != EMPTY for line in lines) else ""


def _rows(run: Run) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield the figure's words, Lockstep, both MM2, the ratios, and what was measured beside."""
    with_mm2 = run.part in WITH_MM2
    for row in PARTS[run.part].rows:
        key = row.key
        systems = {
            name.removeprefix(f"{key}."): value for name, value in run.figures.items() if name.startswith(f"{key}.")
        }
        if OURS not in systems or row.to or not (row.wanted or key in SHOWN):
            continue
        peers = [_shown(row, systems.get(peer)) for peer in PEERS]
        ratios = EMPTY if not with_mm2 else "; ".join(_ratio(run, key, systems, peer) for peer in PEERS)
        beside = [
            f"{NAMES.get(name, name)} {_shown(row, value)}"
            for name, value in systems.items()
            if name not in (OURS, *PEERS, *LEFT_OUT)
        ]
        words = f"{row.words.strip()} ({row.wanted})" if row.wanted else row.words.strip()
        yield (
            words,
            _shown(row, systems[OURS]),
            peers[0],
            peers[1],
            EMPTY if ratios == f"{EMPTY}; {EMPTY}" else ratios,
            "; ".join(beside) or EMPTY,
        )


def _shown(row: Row, value: Scalar | None) -> str:
    return EMPTY if value is None else f"{float(value) * row.times:,.{row.digits}f}"


def _ratio(run: Run, key: str, systems: dict[str, Scalar], peer: str) -> str:
    """Return a ratio of two figures; a run of which only the ratio was kept has it under its flat key."""
    if peer_figure := systems.get(peer):
        ratio = float(systems[OURS]) / float(peer_figure)
    elif key == "records_per_s" and f"ratio_to_{peer}" in run.figures:
        ratio = float(run.figures[f"ratio_to_{peer}"])
    else:
        return EMPTY
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"
