"""The rows of the state topic about comparing copies with their source. Import them from `state_rows`."""

from dataclasses import dataclass

from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Epoch, Offset, PartitionNumber, UnixMs

VERIFICATION_KEY = "verification/request"
"""The key of the only `Verification` of a flow."""


@row_kind("verification", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Row):
    """An operator's request to compare copies, once. Owner: data plane (the driver).

    phase: `running` | `ended`. Slots compare each partition up to where its source ends when they read the request, as
    soon as that is copied. A later request replaces an earlier one.
    """

    id: str = ""
    """The id of the command."""
    phase: str = "running"
    depth: str = "bytes"
    topics: tuple[str, ...] = ()
    """Source topics; (): all that are mirrored."""
    max_bytes_per_s: Count = 0
    """The limit of each slot; 0: no limit."""
    again: bool = False
    """Compare from the beginning, also what is verified."""
    since_ms: UnixMs = 0

    def identity(self) -> tuple[str, ...]:
        return (VERIFICATION_KEY.partition("/")[2],)


@row_kind("verify", "topic", "partition", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPartition(ReasonedRow):
    """The comparison of a partition's copy with its source, and its findings.

    Owner: data plane (the slot that compares).

    It goes on from here, after any end of the slot. It has a `cause` while it does not go on.
    """

    topic: str
    partition: PartitionNumber
    depth: str = "bytes"
    request: str = ""
    """The id of the request that was carried out last, or is."""
    done: bool = False
    """The request of `request` is carried out."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    transform: str = ""
    """The version of the transform through which the source was read; "": its records were compared as they are."""
    generation: Epoch = 0
    """The generation of the offset runs by which it was compared."""
    decisions: Count = 0
    """The number of cases of the copy that were decided by then (`PartitionProgress.gaps`)."""
    first: Offset = -1
    """The first source offset that was compared; -1: none."""
    upstream: Offset = -1
    """The last source offset up to which everything is compared; -1: none."""
    downstream: Offset = -1
    """The target offset that belongs to it."""
    shift: int = 0
    """The distance of that record from the target offset that the offset runs give."""
    upstream_end: Offset = -1
    """The source offset up to which the copy was when the row was written."""
    downstream_end: Offset = -1
    source_end: Offset = 0
    """The source offset behind the last record that the request wants compared."""
    verified_ms: UnixMs = 0
    """The Unix milliseconds when everything that was copied by then was verified; at first when the comparison began.
    """
    records: Count = 0
    """Records that both logs have."""
    bytes: Count = 0
    """Bytes of the batches of the target that were compared."""
    busy_ms: Count = 0
    """The time that this took."""
    beyond: Count = 0
    """Records of the target behind the end of the copy that are no copies of the source's next records, when that was
    compared last."""
    beyond_first: Offset = -1
    """The target offset of the first of them; -1: none, or unknown."""
    differences: tuple[tuple[str, Count], ...] = ()
    """(kind, count): `missing` | `extra` | `foreign` | `order` | `offset` | `unreadable`, or the parts of a record that
    differ, as `key+value`."""
    found: tuple[tuple[str, Offset, Offset], ...] = ()
    """The first ones, as (kind, source offset, target offset); -1 where a log has no such record."""
    not_verified: tuple[tuple[str, Count], ...] = ()
    """Records that could not be compared, by reason: `before-the-offset-runs` | `removed-on-source` |
    `removed-on-target` | `passed-over` | `no-offset-run` | `target-timestamps` | `other-transform` |
    `unreadable`."""
    stretches: tuple[tuple[str, Offset, Offset, Count], ...] = ()
    """The first of these, as (reason, first and last source offset, records); -1: only the target has them."""
