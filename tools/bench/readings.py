"""What a part read off one system, where nothing stands beside it but the figure that is wanted. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tools.bench.outcome import Failed, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Values by key; ``notes`` stand below the table."""

    values: Mapping[str, float]
    notes: Sequence[str] = ()
    log: str = ""

    def figures(self) -> dict[str, Scalar]:
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class Row:
    """How a value is shown: its words, how many digits, by what it is multiplied, and what is wanted of it."""

    words: str
    digits: int
    wanted: str = ""
    times: float = 1.0

    def shown(self, value: float) -> str:
        return f"{value * self.times:,.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """The table of one part: its title and its rows by the key of the value."""

    title: str
    rows: Mapping[str, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingsPart:
    """``name`` is a key of `SHEETS`; the values of each system have the keys of its rows."""

    name: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    systems: Mapping[str, Readings | Failed]


READERS = ("topic-sync", "heartbeat", "acl-sync", "checkpoint", "data-plane", "slot")
"""Those that read the whole state topic."""


def _reader_rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for reader in READERS:
        key = reader.replace("-", "_")
        found[f"replay_log_s_{key}"] = Row(f"{reader} reads the log as it is, s", 1)
        found[f"replay_compacted_s_{key}"] = Row(f"  {reader}, compacted, s", 2)
        found[f"fold_mib_{key}"] = Row(f"  {reader} holds of it, MiB", 0)
        found[f"follow_share_{key}"] = Row(f"  {reader} follows, % of a core", 1, "", 100)
    return found


SHEETS: Mapping[str, Sheet] = {
    "idle_2000": Sheet(
        "2,000 idle partitions",
        {
            "idle_cpu_share": Row("CPU, % of a core", 1, "below 5", 100),
            "idle_rss_mib": Row("RSS of all processes, MiB", 0, "below 1,229"),
            "first_record_s": Row("production to first record, s: median", 3),
            "first_record_longest_s": Row("  longest", 3, "below 1"),
            "all_copied_s": Row("start to all partitions copied, s", 1),
        },
    ),
    "verify": Sheet(
        "Verification of a copy, two slots",
        {
            "bytes_records_per_s": Row("bytes: records/s", 0, "at least 1,000,000"),
            "bytes_cpu_s_per_million": Row("bytes: CPU s per million", 2),
            "crc_records_per_s": Row("crc: records/s", 0),
            "crc_cpu_s_per_million": Row("crc: CPU s per million", 2),
            "record_records_per_s": Row("record: records/s", 0),
            "record_cpu_s_per_million": Row("record: CPU s per million", 2),
            "record_to_bytes_cpu": Row("CPU of record to bytes", 1, "at least 2"),
            "copy_alone_per_s": Row("copy alone: records/s", 0),
            "copy_beside_per_s": Row("copy that is verified as it grows: records/s", 0),
            "verified_beside_per_s": Row("  verified meanwhile: records/s", 0),
            "copy_lost_percent": Row("  fewer records/s, %", 1, "under 10"),
            "copy_alone_cpu_s_per_million": Row("copy alone: CPU s per million, brokers too", 2),
            "copy_beside_cpu_s_per_million": Row("copy that is verified: CPU s per million, brokers too", 2),
            "copy_cpu_percent": Row("  more CPU, %", 1, "under 10"),
            "paced_alone_per_s": Row("copy limited to 0.4 of that: records/s", 0),
            "paced_beside_per_s": Row("  that is verified as it grows", 0),
            "paced_verified_per_s": Row("  verified meanwhile, records/s", 0),
            "paced_lost_percent": Row("  fewer records/s than without, %", 1, "under 10"),
        },
    ),
    "catch_up": Sheet(
        "Catching up",
        {
            "slot_peak_rss_mib": Row("peak RSS of a slot, MiB", 0, "at most 300"),
            "peak_rss_mib": Row("peak RSS of all processes, MiB", 0, "at most 1,638"),
            "records_per_s": Row("records/s, with start", 0),
            "mb_per_s": Row("MB/s, with start", 0),
            "total_s": Row("start to last record, s", 1),
        },
    ),
    "new_topic": Sheet(
        "New topic to its first mirrored record",
        {
            "median_s": Row("median, s", 2, "at most 3"),
            "longest_s": Row("longest, s", 2, "at most 5"),
            "shortest_s": Row("shortest, s", 2),
        },
    ),
    "ten_topics": Sheet(
        "Ten topics added under load",
        {
            "longest_gap_before_ms": Row("longest gap between arrivals, ms: the minute before", 0),
            "longest_gap_ms": Row("  the minute from when they were added", 0),
            "longest_gap_over_before_ms": Row("  how much longer", 0, "at most 50"),
            "gap_ratio": Row("  to the minute before", 2),
            "all_mirrored_s": Row("until each had its first mirrored record, s", 1),
        },
    ),
    "kills": Sheet(
        "100,000 records/s for a minute, three kill -9",
        {
            "lost": Row("records lost", 0, "0"),
            "doubled": Row("  doubled", 0, "0"),
            "displaced": Row("  out of order", 0, "0"),
            "records": Row("records on the source", 0),
            "kills": Row("kills", 0),
        },
    ),
    "away": Sheet(
        "Clusters that do not answer",
        {
            "source_cpu_share": Row("source killed: CPU of the greediest service, % of a core", 1, "below 3", 100),
            "source_copies_after_s": Row("source killed: from its return to copied, s", 1),
            "target_cpu_share": Row("target killed: CPU of the greediest service, % of a core", 1, "below 3", 100),
            "target_copies_after_s": Row("target killed: from its return to copied, s", 1),
            "both_cpu_share": Row("both killed: CPU of the greediest service, % of a core", 1, "below 3", 100),
            "both_copies_after_s": Row("both killed: from their return to copied, s", 1),
            "source_silent_cpu_share": Row(
                "source frozen: CPU of the greediest service, % of a core", 1, "below 3", 100
            ),
            "source_silent_copies_after_s": Row("source frozen: from its return to copied, s", 1),
        },
    ),
    "switchover": Sheet(
        "Applications that switch sides",
        {
            "planned_first_s": Row("switchover to a record read there, s: first group", 2, "below 10"),
            "planned_median_s": Row("  median of the groups", 2, "below 10"),
            "planned_last_s": Row("  last group", 2, "below 10"),
            "planned_lost": Row("  lost by the switchover", 0, "0"),
            "planned_again": Row("  read again after it", 0, "0"),
            "planned_records": Row("  records written before and after it", 0),
            "unplanned_first_s": Row("source killed: failover to a record read there, s: first group", 2, "below 15"),
            "unplanned_median_s": Row("  median of the groups after the failover", 2, "below 15"),
            "unplanned_last_s": Row("  last group after the failover", 2, "below 15"),
            "unplanned_from_kill_s": Row("  from the kill to the first group", 2),
            "unplanned_said": Row("  records that it said would be lost", 0),
            "unplanned_lost": Row("  lost by the failover", 0),
            "unplanned_lost_known": Row("  of these, accepted before the moment up to which it knew", 0, "no more"),
            "unplanned_again": Row("  read again after the failover", 0),
            "unplanned_records": Row("  records written before and after the failover", 0),
        },
    ),
    "control_plane": Sheet(
        "Control services: 10,000 topics; 1,000 groups in ten partitions; 1,000,000 offset syncs",
        {
            "topics_mirrored_s": Row("topics: until all are on the target for the first time, s", 1),
            "topics_planned_s": Row("  from a restart until all were checked, s", 1, "below 10"),
            "topics_round_cpu_s": Row("  a steady round, CPU s", 2, "below 1"),
            "topics_cpu_share": Row("  at rest, % of a core", 1, "", 100),
            "topics_rss_mib": Row("  RSS of topic-sync, MiB", 0, "below 150"),
            "groups_first_s": Row("groups: from leading until every checkpoint is there, s", 1, "below 10"),
            "groups_round_s": Row("  a steady round, once a second asked for, s", 1, "below 10"),
            "groups_round_cpu_s": Row("    CPU s", 2),
            "groups_rss_mib": Row("  RSS of checkpoint with these groups, MiB", 0, "below 150"),
            "syncs_replayed_s": Row("syncs: replayed, s", 1),
            "syncs_java_s": Row("  by MM2's store, s", 1),
            "syncs_rss_mib": Row("  RSS of checkpoint with these syncs, MiB", 0, "below 150"),
        },
    ),
    "scale": Sheet(
        "10,000 partitions in 50 slots",
        {
            "plan_first_ms": Row("first plan, ms", 1),
            "plan_again_ms": Row("planned again, ms", 1),
            "plan_again_moved": Row("  partitions that change over", 0, "0"),
            "plan_lost_ms": Row("a slot lost: planned, ms", 1),
            "plan_lost_moved": Row("  partitions that change over to the others", 0),
            "plan_lost_least": Row("  as few as possible", 0),
            "plan_added_ms": Row("100 topics added: planned, ms", 1),
            "plan_added_moved": Row("  partitions of others that change over", 0, "0"),
            "imbalance_before": Row("heaviest slot to the mean, before balancing", 2),
            "imbalance_after": Row("  after it", 2),
            "imbalance_least": Row("  the heaviest partition alone", 2),
            "heavy_slots_before": Row("slots over 1.5 times the mean, before balancing", 0),
            "heavy_slots_after": Row("  after balancing", 0),
            "balance_rounds": Row("rounds of balancing", 0),
            "balance_minutes": Row("  which take, in minutes", 0),
            "balance_round_ms": Row("  the slowest, ms", 1),
            "balance_moved": Row("  partitions that change over in all rounds", 0),
            "assignment_rows_bytes": Row("assignment rows, bytes", 0),
            "assignment_row_longest_bytes": Row("  the longest, bytes", 0),
            "metrics_page_ms": Row("the driver's page of metrics, ms", 0),
            "metrics_page_mb": Row("  its size, MB", 1),
            "state_rows_per_s": Row("state topic: rows/s", 0),
            "state_row_bytes": Row("  stored bytes of a row", 0),
            "state_bytes_per_s": Row("  stored bytes/s", 0),
            "state_log_mb": Row("  the log as it is, MB", 1),
            "state_log_rows": Row("  the log as it is, rows", 0),
            "state_compacted_mb": Row("  compacted, MB", 1),
            "state_compacted_rows": Row("  compacted, rows", 0),
            **_reader_rows(),
            "spread_records_per_s": Row("Spark cluster: records/s", 0),
            "spread_local_records_per_s": Row("  as many slots without a cluster: records/s", 0),
            "spread_start_s": Row("  start to first record, on the cluster, s", 1),
            "spread_slots_most": Row("  slots of the fullest worker", 0),
            "spread_slots_least": Row("  slots of the emptiest worker", 0),
            "spread_partitions_most": Row("  partitions of the fullest slot", 0),
            "spread_partitions_least": Row("  partitions of the emptiest slot", 0),
        },
    ),
}
