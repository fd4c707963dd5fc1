"""The rules of MM2 for altering and resetting source offsets (`mm2-behaviour.md` §1.7 and §7). Pure.

These are nos. 41 to 48, 73 to 79 and 131 to 138. A request has the shape of Connect's REST API, `PATCH
/connectors/NAME/offsets`:

    {"offsets": [{"partition": {"cluster": "A", "topic": "orders", "partition": 0}, "offset": {"offset": 123}}]}

An offset of null is a reset: a tombstone, allowed for any partition, so that rubbish can be cleaned up. One wrong entry
refuses all. The offset is that of the last record copied; the copy continues behind it. Those of the checkpoint and
heartbeat connectors have no function, and only 0 is allowed.

Beyond MM2's rules: a field that the connector does not have is refused, for such an offset would never be read.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_state.codecs.mm2_codec import MalformedRecord, connect_json
from lockstep_state.codecs.strict_json import parse_json
from lockstep_state.commands.command_vocabulary import Connector

INTEGER = range(-(2**31), 2**31)
LONG = range(-(2**63), 2**63)

FIELDS: Mapping[Connector, Mapping[str, type[str] | type[int]]] = {
    Connector.SOURCE: {"cluster": str, "partition": int, "topic": str},
    Connector.CHECKPOINT: {"partition": int, "topic": str, "group": str},
    Connector.HEARTBEAT: {"sourceClusterAlias": str, "targetClusterAlias": str},
}
"""The fields of a partition of each connector, in the order of the key's bytes (`mm2-behaviour.md` §1.7)."""


class RefusedOffsets(ValueError):
    """An error for a request that MM2 would refuse. The text is a sentence that names the entry."""


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A valid entry of a request; `offset` None resets.

    `partition` has the connector's fields in their order. If it is rubbish that is reset, it is as it was given.
    """

    partition: Mapping[str, Any] | None
    offset: int | None

    def is_for(self, connector: Connector) -> bool:
        """Return whether the entry names a partition of the connector, and no rubbish to clean up."""
        return self.partition is not None and _fault(connector, self.partition) == ""

    def source_partition(self) -> tuple[str, tuple[str, int]] | None:
        """Return cluster and (topic, partition) of a source connector's entry; None for any other entry."""
        if self.partition is None or not self.is_for(Connector.SOURCE):
            return None
        return self.partition["cluster"], (self.partition["topic"], self.partition["partition"])


class OffsetFold:
    """The fold of Connect's offsets topic. The records of a key have to come in log order.

    As in Connect, the last record of a key counts, keys are compared by bytes, and a reset drops a key
    (`mm2-behaviour.md` §1.7).
    """

    def __init__(self) -> None:
        self.changes: dict[str, dict[bytes, OffsetChange]] = {}
        """The offsets that are not reset, by the connector's name and the key as in the topic."""

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Fold a record. A value without an offset, or with a negative one, is a reset.

        Raises:
            MalformedRecord: It is no record of Connect's, and has changed nothing.
        """
        try:
            parsed = parse_json(key or b"")
            body = None if value is None else parse_json(value)
        except ValueError as exc:
            raise MalformedRecord(f"offset of Connect: {exc}") from exc
        match parsed:
            case [str(connector), partition] if key is not None and (partition is None or isinstance(partition, dict)):
                offset = body.get("offset") if isinstance(body, dict) else None
                number = int(offset) if isinstance(offset, int) and not isinstance(offset, bool) else -1
                if number not in LONG:
                    raise MalformedRecord("offset of Connect: the offset has more than 64 bits")
                offsets = self.changes.setdefault(connector, {})
                offsets.pop(key, None)
                if number >= 0:
                    offsets[key] = OffsetChange(partition, number)
            case _:
                raise MalformedRecord("offset of Connect: its key is no [connector, partition]")

    def for_connector(self, connector: str) -> Mapping[bytes, OffsetChange]:
        """Return the offsets of the connector of that name."""
        return self.changes.get(connector, {})


def parse_changes(connector: Connector, request: object) -> tuple[OffsetChange, ...]:
    """Return the entries of a request, in its order. Raises RefusedOffsets."""
    entries = request.get("offsets") if isinstance(request, Mapping) else None
    if not isinstance(entries, list):
        raise RefusedOffsets('a request is {"offsets": [{"partition": {...}, "offset": {"offset": N} or null}]}')
    return tuple(_change(connector, number, entry) for number, entry in enumerate(entries, start=1))


def source_request(cluster: str, topic: str, partition: int | None, offset: int | None) -> dict[str, Any]:
    """Return the request that sets the last copied offset of one source partition. None: it is reset.

    `parse_changes` checks it, also whether it has a partition.
    """
    source_partition = {"cluster": cluster, "topic": topic, "partition": partition}
    return {"offsets": [{"partition": source_partition, "offset": None if offset is None else {"offset": offset}}]}


def encode_change(name: str, change: OffsetChange) -> tuple[bytes, bytes | None]:
    """Return key and value for the offsets topic, byte for byte as Connect writes them. `name` is the connector's."""
    key = connect_json([name, change.partition])
    return key, None if change.offset is None else connect_json({"offset": change.offset})


def listing(changes: Iterable[OffsetChange]) -> dict[str, list[dict[str, Any]]]:
    """Return offsets as `GET /connectors/NAME/offsets` answers. Resets are left out."""
    return {
        "offsets": [
            {"partition": dict(change.partition or {}), "offset": {"offset": change.offset}}
            for change in changes
            if change.offset is not None
        ]
    }


def _change(connector: Connector, number: int, entry: object) -> OffsetChange:
    if not isinstance(entry, Mapping) or "partition" not in entry or "offset" not in entry:
        raise RefusedOffsets(f"entry {number}: it needs a partition and an offset (null resets)")
    partition, offset = entry["partition"], entry["offset"]
    if partition is not None and not isinstance(partition, Mapping):
        raise RefusedOffsets(f"entry {number}: a partition is an object, not {_shown(partition)}")
    if offset is None:
        return OffsetChange(_ordered(connector, partition), None)
    if partition is None:
        raise RefusedOffsets(f"entry {number}: its partition may not be null")
    if fault := _fault(connector, partition):
        raise RefusedOffsets(f"entry {number}: partition {_shown(partition)} {fault}")
    return OffsetChange(_ordered(connector, partition), _offset(connector, number, partition, offset))


def _ordered(connector: Connector, partition: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    fields = FIELDS[connector]
    if partition is None or partition.keys() != fields.keys():
        return partition
    return {field: partition[field] for field in fields}


def _fault(connector: Connector, partition: Mapping[str, Any]) -> str:
    """Return what is wrong with a partition; "" if nothing is."""
    fields = FIELDS[connector]
    for field, kind in fields.items():
        if field not in partition:
            return f"lacks the field {field!r}, which a {connector.value} needs"
        value = partition[field]
        if kind is str and not isinstance(value, str):
            return f"has {_shown(value)} as {field!r}, which must be a string"
        if kind is int and (not _is_integer(value) or value not in INTEGER):
            return f"has {_shown(value)} as {field!r}, which must be an integer up to {INTEGER[-1]}"
        if kind is int and value < 0:
            return f"has {value} as {field!r}, which may not be negative"
    if more := sorted(partition.keys() - fields.keys()):
        return f"has the field {more[0]!r}, which a {connector.value} does not know"
    return ""


def _offset(connector: Connector, number: int, partition: Mapping[str, Any], offset: object) -> int:
    subject = f"entry {number}: the offset of {_shown(partition)}"
    if not isinstance(offset, Mapping) or "offset" not in offset:
        raise RefusedOffsets(f'{subject} is {_shown(offset)}: write {{"offset": N}}')
    value = offset["offset"]
    if not _is_integer(value) or value not in LONG:
        raise RefusedOffsets(f"{subject} is {_shown(value)}, which must be an integer")
    if connector is not Connector.SOURCE and value != 0:
        raise RefusedOffsets(f"{subject} is {value}: that of a {connector.value} can only be 0, or null to reset it")
    if value < 0:
        raise RefusedOffsets(f"{subject} is {value}, which may not be negative")
    return int(value)


def _is_integer(value: object) -> bool:
    """Return whether the value is an integer in JSON. True and false are integers to Python only."""
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
