"""What the services of a flow have written down so far: rows of the state topic, events, source offsets."""

import json
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from lockstep_state.codecs.connect_offsets import OffsetChange
from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.rows.state_rows import Row, decode_row
from tests.support.clusters import Record, read_topic

NOT_YET = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)
"""What is answered about a topic that is being created."""


def read_so_far(bootstrap: str, topic: str) -> list[Record]:
    """Read a topic that somebody else may be creating just now. Return nothing until it exists."""
    try:
        return read_topic(bootstrap, topic)
    except KafkaException as error:
        if error.args[0].code() in NOT_YET:
            return []
        raise


def last_row(bootstrap: str, flow: Flow, key: str) -> Row | None:
    """Return the row that stands under `key` in the flow's state topic."""
    records = [record for record in read_so_far(bootstrap, state_topic(flow)) if record.key == key.encode()]
    return decode_row(key.encode(), records[-1].value) if records else None


def events(bootstrap: str, flow: Flow, *kinds: str) -> list[Event]:
    """Return the flow's events of these kinds, oldest first."""
    decoded = [
        decode_event(record.value) for record in read_so_far(bootstrap, events_topic(flow)) if record.value is not None
    ]
    return [event for event in decoded if event.kind in kinds]


def source_offsets(records: Iterable[Record], connector: str = "") -> dict[tuple[str, int], int | None]:
    """Return what the source connector of this name, or any, finds in Connect's topic of offsets; None: reset last."""
    offsets: dict[tuple[str, int], int | None] = {}
    for record in records:
        try:
            name, partition = json.loads(record.key or b"")
            offset = None if record.value is None else json.loads(record.value)["offset"]
        except (ValueError, KeyError, TypeError):  # another connector's, in a shape of its own
            continue
        place = OffsetChange(partition, offset).source_partition()
        if place is not None and connector in ("", name):
            offsets[place[1]] = offset
    return offsets
