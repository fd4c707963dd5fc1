"""Steps of a chain of appends, for the tests of it."""

from lockstep_data_plane.core.append_sequence import AppendSequence, InFlightBatch
from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch, as_outgoing, scan
from tests.support.batch_bytes import batch, records


def outgoing(first: int, count: int = 1, **more: int) -> OutgoingBatch:
    return as_outgoing(batch(records(first, count), **more))


FIVE = 5  # as many as a lane to a near broker allows


def chain_of(*outgoing_batches: OutgoingBatch, sequence: int = -1, downstream: int = -1) -> AppendSequence:
    append_sequence = AppendSequence(4000, 2, sequence, downstream)
    for outgoing_batch in outgoing_batches:
        append_sequence.enqueue(outgoing_batch)
    return append_sequence


def launch_all(append_sequence: AppendSequence) -> list[InFlightBatch]:
    flights = []
    while append_sequence.may_launch(FIVE):
        flights.append(append_sequence.launch())
    return flights


def stamped(sent: InFlightBatch) -> Batch:
    (sent_batch,) = scan(bytes(sent.data))
    return sent_batch


def opened(*outgoing_batches: OutgoingBatch) -> AppendSequence:
    """A chain whose first append was acknowledged, at downstream offset 0 and with sequence 0."""
    append_sequence = chain_of(outgoing(0))
    append_sequence.on_ack(append_sequence.launch(), 0)
    for outgoing_batch in outgoing_batches:
        append_sequence.enqueue(outgoing_batch)
    return append_sequence
