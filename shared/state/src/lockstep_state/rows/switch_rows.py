"""The rows of the state topic about a switch of sides. Import them from `state_rows`.

`lockstep switchover`, `failover` and `failback` write them, in a terminal or in a console.
"""

from dataclasses import dataclass

from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Offset, PartitionNumber, UnixMs

SWITCH_KEY = "switch/current"
"""The key of the only `Switch` of a flow."""


@row_kind("switch", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Row):
    """The last switch by this flow, or the one under way. It has no owner.

    One command or console at a time writes it, the one whose `operator` is in the newest row. Another one that
    continues the switch writes its own name first. phase: `running` | `done` | `aborting` | `aborted`.
    """

    id: str
    verb: str
    """`switchover` | `failover` | `failback`."""
    phase: str = "running"
    operator: str = ""
    """The run of the command that carries the switch out."""
    by: str = ""
    """The name of the person who began it; "": an earlier release began it."""
    console: str = ""
    """The console that carries it out; "": a command in a terminal does, or nobody. While a step runs, a console writes
    the row every few seconds. If it falls silent, another console continues the switch."""
    progress: str = ""
    """What the step under way waits for, as a console has written it last."""
    began_ms: UnixMs = 0
    ended_ms: UnixMs = 0
    topics: tuple[str, ...] = ()
    """Source topics; (): all that are mirrored."""
    drill: bool = False
    cutoff_ms: UnixMs = 0
    """Unix milliseconds from which on records are not waited for; 0: all are waited for that exist in step `ends`."""
    rewind_groups: bool = False
    diverged: str = ""
    """The treatment of records that only the other cluster has, in a failback: `copy` | `leave`; "": they block it."""
    allowed_loss: int = -1
    """The number of records that a failover may lose; -1: none."""
    force: bool = False
    """Everything is allowed that `allowed` names one by one. Only earlier releases wrote it."""
    allowed: tuple[str, ...] = ()
    """The permissions of the operator: `soon` | `not-ready` | `left-groups` | `unknown-loss` | `stale-groups` |
    `source-gone`."""
    opposite_was: str = ""
    """The desired state of the reverse flow when the switch began: `running` | `paused` | `stopped`. "": the file has
    no such flow."""
    opposite_paused: tuple[str, ...] = ()
    """Topics of `topics` that were paused in the reverse flow when the switch began."""
    steps: tuple[tuple[str, str, UnixMs, UnixMs, str], ...] = ()
    """(step, state, began, ended, text) in order; times are Unix milliseconds. state: `waiting` | `running` | `done` |
    `failed` | `undone` | `left`."""
    lost: Count = 0
    """Records that the source was known to have and that were not copied."""
    late: Count = 0
    """Records that came to the source after the fence and were not copied."""
    late_unknown: bool = False
    """The number of those is not known, because the source did not answer any more."""
    last_done_ms: UnixMs = 0
    """The Unix milliseconds when the last switch before this one ended that was no drill; 0: there was none."""
    source_known_ms: UnixMs = 0
    """The Unix milliseconds up to which the ends of the source's logs were known; 0: unknown."""
    groups_known_ms: UnixMs = 0
    """The Unix milliseconds up to which the groups of the source were known; 0: unknown."""

    def identity(self) -> tuple[str, ...]:
        return (SWITCH_KEY.partition("/")[2],)


@row_kind("switch-topic", "topic", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTopic(Row):
    """The partitions of a source topic in the switch with this id. Written as `Switch` is."""

    topic: str
    target_topic: str
    switch: str
    ends: tuple[Offset, ...] = ()
    """By partition, the source offset up to which is copied: the next one behind it; -1: unknown."""
    copied: tuple[Offset, ...] = ()
    """By partition, the last source offset that was copied when the flow stopped; -1: none."""
    target_ends: tuple[Offset, ...] = ()
    """By partition, the end of the target's log then."""
    missing: tuple[Offset, ...] = ()
    """By partition, records of the source that were known then and not copied; -1: unknown."""
    since_ms: tuple[UnixMs, ...] = ()
    """By partition, the Unix milliseconds from which on records are missing; 0: none is."""
    known_ms: tuple[UnixMs, ...] = ()
    """By partition, the Unix milliseconds up to which its end on the source was known; 0: unknown. Of what the source
    accepted later, `missing` counts what slots had fetched."""


@row_kind("switch-group", "group", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGroup(Row):
    """A consumer group in the switch with this id, as step `groups` left it. Written as `Switch` is.

    state: `exact` | `behind` | `in-use` | `reading` | `moving` | `waiting` | `contested` | `skips` | `refused` |
    `unknown`. Behind: it reads at most `read_again` records again. In use: it works on the target. Unknown: it has a
    translated offset, and when its offset was read on the source is unknown. The text has the reason.
    """

    group: str
    switch: str
    state: str
    text: str = ""
    read_again: Count = 0
    positions: tuple[tuple[str, PartitionNumber, Offset, Offset], ...] = ()
    """(target topic, partition, upstream, downstream) of its checkpoints then."""
    known_ms: UnixMs = 0
    """The Unix milliseconds up to which its offsets on the source were known; 0: unknown. What it committed there later
    is not in `positions`, and those records are read again."""
