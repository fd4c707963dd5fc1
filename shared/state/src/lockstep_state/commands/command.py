"""The records of the commands topic (`architecture.md` §3). An event with the same id answers each."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from lockstep_state.rows.row import ControlRecord
from lockstep_state.rows.value_types import Longest, UnixMs

ShortText = Annotated[str, Longest(1_000)]
"""A text short enough to be repeated in the answer, which has to fit into a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(ControlRecord):
    """A request of an operator. `service` names the service that is asked (empty: every service of the flow)."""

    id: ShortText
    verb: ShortText
    """`refresh`, `pause`, `resume`, `stop`, `restart`, `offsets-list`, `offsets-alter`, `offsets-reset`, or
    `sync-groups` (`VERBS`)."""
    service: ShortText = ""
    subject: Annotated[str, Longest(40_000)] = ""
    """The scope: "" or `flow`, `connector:NAME`, `slot:N`, `topic:T`, `partition:T-N`, `group:G`."""
    at_ms: UnixMs = 0
    arguments: dict[str, Any] = field(default_factory=dict)
    """JSON values. Of `offsets-alter` the body of Connect's `PATCH /connectors/NAME/offsets`, and with `decided` the
    place at which a decision about a halted partition counts (`DecidedPlace`). Of `sync-groups`: `share`
    is the commands partition whose groups are meant. With `source` the source is asked for their positions. With
    `rewind` groups that went back on the source go back on the target too."""
    by: ShortText = ""
    """The name of the person who asks, as the sender says it; "": an earlier release sent it. Nobody checks it: who may
    write to the commands topic may ask."""

    def encode(self) -> tuple[bytes, bytes]:
        """Return key (the id) and value as in the topic."""
        return self.id.encode(), self.encode_value()


def decode_command(value: bytes) -> Command:
    """Return the command in a value. Raises as `ControlRecord.decode_value`."""
    return Command.decode_value(value, "command", "id")
