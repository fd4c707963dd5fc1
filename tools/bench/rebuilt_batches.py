"""What rebuilt batches cost a slot, by stage, without a broker: ``python -m tools.bench.rebuilt_batches``.

The bench's own orders, 469 bytes with their keys, are in batches of 16 and 256 KB: compacted (one record in four is
gone), under log append time, and in formats 0 and 1. Every figure is CPU seconds for a million records, the least of
several rounds. So a machine that does something else beside it disturbs little.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console

from lockstep_data_plane.core.acked_position import AckedPosition
from lockstep_data_plane.core.append_sequence import Ack, AppendSequence
from lockstep_data_plane.record_batch import copied_records
from lockstep_data_plane.record_batch.classify import BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, compress, decompress
from lockstep_data_plane.record_batch.gapped_offsets import stretches_within
from lockstep_data_plane.record_batch.layout import CODEC_MASK, HEADER_SIZE, Batch, scan
from lockstep_data_plane.record_batch.rebuild import read_records, rebuild
from lockstep_rules.offsets.offset_sync_rule import OffsetSyncRule
from tests.support.batch_bytes import LOG_APPEND_TIME, LZ4, batch, record
from tests.support.message_sets import Message, message_set
from tools.bench.orders import Orders
from tools.bench.throughput import EACH

NOW = 1_790_000_000_000
BATCH_BYTES = (1 << 14, 1 << 18)
RECORD_BYTES = 490
"""A record with what the format adds."""
OFFSET_LAG_MAX = 100
NO_LIMITS = TargetLimits()

Make = Callable[[Sequence[Message], int], Sequence[Batch]]
Stage = Callable[[], object]


def compacted(messages: Sequence[Message], end: int) -> Sequence[Batch]:
    """Return the batch that the cleaner leaves."""
    left = [record(m.offset, m.value, key=m.key, timestamp=m.timestamp) for m in messages if m.offset % EACH]
    return [batch(left, base_offset=messages[0].offset, last_offset=end - 1, codec=LZ4)]


def appended_in_time(messages: Sequence[Message], end: int) -> Sequence[Batch]:
    """Return a whole batch with the time of the broker."""
    whole = [record(m.offset, m.value, key=m.key, timestamp=m.timestamp) for m in messages]
    return [batch(whole, codec=LZ4, attributes=LOG_APPEND_TIME, max_timestamp=NOW)]


def old_set(magic: int, codec: int) -> Make:
    """Return what makes a message set of an old format."""
    return lambda messages, end: list(scan(message_set(magic, messages, codec)))


CASES: Mapping[str, Make] = {
    "compacted, lz4": compacted,
    "log append time, lz4": appended_in_time,
    "format 1, lz4": old_set(1, LZ4),
    "format 0, lz4": old_set(0, LZ4),
    "format 1, none": old_set(1, 0),
}


def batches(make: Make, batch_bytes: int, records: int) -> list[Batch]:
    """At least so many records."""
    orders, each, made = Orders.drawn(), batch_bytes // RECORD_BYTES, list[Batch]()
    for first in range(0, records, each):
        numbers = range(first, first + each)
        content = [Message(n, b"customer-%09d" % n, orders.value(n), NOW + n // 3) for n in numbers]
        made += make(content, first + each)
    return made


def stages(source: Sequence[Batch]) -> Iterator[tuple[str, Stage]]:
    """Yield each stage by its name."""
    rebuilt = [outgoing for original in source for outgoing in rebuild(original, 0, NO_LIMITS)]
    payloads = [(outgoing.data[HEADER_SIZE:], outgoing.data[22] & CODEC_MASK) for outgoing in rebuilt]
    plain = [(decompress(*payload), payload[1]) for payload in payloads if payload[1]]
    sequence, acks, downstream = AppendSequence(1, 0, -1, -1), list[Ack](), 0
    for outgoing in rebuilt:
        sequence.enqueue(outgoing)
        acks += sequence.on_ack(sequence.launch(), downstream)
        downstream += outgoing.count

    def judge() -> None:
        for original in source:
            if classify(original, 0, NO_LIMITS, aborted=False)[0] is not BatchAction.REBUILD:
                raise ValueError("the case is none that is rebuilt")

    def send() -> None:
        sequence = AppendSequence(1, 0, -1, -1)
        for outgoing in rebuilt:
            sequence.enqueue(outgoing)
            sequence.on_ack(sequence.launch(), 0)

    def acknowledge() -> None:
        """Do what a slot does once the target has acknowledged: offset runs, and the rule of offset syncs."""
        acked, rule = AckedPosition("t", 0, OFFSET_LAG_MAX), OffsetSyncRule(OFFSET_LAG_MAX)
        acked.appended(acks, sequence)
        for ack in acks:
            rule.on_stretches(ack.downstream, stretches_within(ack.outgoing.offsets))

    yield "judge", judge
    yield "rebuild", lambda: [rebuild(original, 0, NO_LIMITS) for original in source]
    yield "of it decompress", lambda: [decompress(*payload) for payload in payloads]
    yield "of it compress", lambda: [compress(*payload, JAVAS_LEVELS) for payload in plain]
    yield "only read", lambda: [list(read_records(original)) for original in source]
    yield "stamp", send
    yield "acknowledge", acknowledge


def cpu_seconds(stage: Stage, rounds: int) -> float:
    """Return the least that a round took."""
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        stage()
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> None:
    """Measure, and print a line for each case and size."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.rebuilt_batches", description=__doc__)
    parser.add_argument("--records", type=int, default=4_000, help="records of a round")
    parser.add_argument("--rounds", type=int, default=7, help="the least of so many counts")
    parser.add_argument("--case", choices=sorted(CASES), action="append", help="only these")
    parser.add_argument("--decoded", action="store_true", help="without the compiled module: each record is decoded")
    asked, console = parser.parse_args(), Console()
    if asked.decoded:
        copied_records.find_compiled = lambda: None  # type: ignore[assignment, attr-defined]  # as without a C compiler
    for name, make in CASES.items():
        for batch_bytes in BATCH_BYTES if not asked.case or name in asked.case else ():
            source = batches(make, batch_bytes, asked.records)
            count = sum(len(list(read_records(original))) for original in source)
            took = [(stage, 1e6 * cpu_seconds(run, asked.rounds) / count) for stage, run in stages(source)]
            figures = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in took)
            console.print(f"{name}, {batch_bytes >> 10} KB: {figures}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
