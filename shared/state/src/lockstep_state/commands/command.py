"""Records of the commands topic: what an operator asked for (`architecture.md` §3).

Each is answered by an event with the same id.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from lockstep_state.rows.row import ControlRecord
from lockstep_state.rows.value_types import Longest, UnixMs

ShortText = Annotated[str, Longest(1_000)]
"""An answer repeats what the command says, and has to fit into a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(ControlRecord):
    """One request. `service` names who is asked (empty: every service of the flow); `verb` what for."""

    id: ShortText
    verb: ShortText
    """`refresh`, `pause`, `resume`, `stop`, `restart`, `offsets-list`, `offsets-alter`, `offsets-reset`, or
    `sync-groups` (`VERBS`)."""
    service: ShortText = ""
    subject: Annotated[str, Longest(40_000)] = ""
    """What it is about: "" or `flow`, `connector:NAME`, `slot:N`, `topic:T`, `partition:T-N`, `group:G`."""
    at_ms: UnixMs = 0
    arguments: dict[str, Any] = field(default_factory=dict)
    """JSON values. Of `offsets-alter` the body of Connect's `PATCH /connectors/NAME/offsets`. Of `sync-groups`:
    `share` is the commands partition whose groups are meant. With `source` the source is asked for their positions.
    With `rewind` groups that went back on the source go back on the target too."""

    def encode(self) -> tuple[bytes, bytes]:
        """Key (the id) and value as they lie in the topic."""
        return self.id.encode(), self.encode_value()


def decode_command(value: bytes) -> Command:
    """Return the command in a value. Raises as `ControlRecord.decode_value`."""
    return Command.decode_value(value, "command", "id")
