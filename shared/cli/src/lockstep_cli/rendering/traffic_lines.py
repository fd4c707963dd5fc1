"""The traffic of a flow over its links in a day, as lines that people read. Pure."""

from collections.abc import Iterator

from lockstep_ops.formatting import count_text
from lockstep_ops.plan.rules.flow_plan import LinkTraffic, TrafficForecast
from lockstep_ops.plan.rules.rate import size_text

BASES = {
    "stored": "as the brokers have it on disk",
    "sampled": "as the newest batches are compressed",
    "unchanged": "as batches pass unchanged",
    "at-most": "at most: uncompressed batches are compressed on the way",
    "recompressed": "as a sample of batches takes compressed anew",
    "unknown": "not known: the brokers do not say how large the logs are on disk, and no batch could be read",
}

UNMEASURED = (
    "not known: batches are compressed anew, and no sample could be measured. lockstep_link_bytes_total measures it in "
    "operation"
)


def traffic_lines(traffic: TrafficForecast) -> Iterator[str]:
    """Yield the bytes that producers add in a day, the bytes over each link, and what is not counted."""
    if traffic.partitions:
        yield from _counted(traffic)
    else:
        yield f"not known: {_uncounted(traffic)}"
    if traffic.codecs:
        topics = ", ".join(f"{codec} in {count_text(count, 'topic')}" for codec, count in traffic.codecs.items())
        unread = f"; {count_text(traffic.unsampled, 'topic')} not read" if traffic.unsampled else ""
        yield f"codecs of the newest batches: {topics}{unread}"


def _counted(traffic: TrafficForecast) -> Iterator[str]:
    size = "uncompressed bytes not known: no record could be read"
    if traffic.record_bytes_a_day is not None:
        size = f"{size_text(traffic.record_bytes_a_day)} uncompressed"
    records = "?" if traffic.records_a_day is None else f"{traffic.records_a_day:,}"
    yield f"producers: {records} records, {size}, by the last 24 hours"
    yield f"{_link(traffic.source)}{_share(traffic)}"
    yield _link(traffic.target)
    if traffic.uncounted:
        yield f"not counted: {_uncounted(traffic)}"
    if traffic.compacted:
        yield f"{count_text(traffic.compacted, 'partition')} of compacted topics count as compaction has left them"


def _link(link: LinkTraffic) -> str:
    way = f"{link.direction} {'from' if link.direction == 'received' else 'to'} {link.cluster}"
    if link.bytes_a_day is None and link.basis == "recompressed":
        return f"{way}: {UNMEASURED}"
    size = "" if link.bytes_a_day is None else f"{size_text(link.bytes_a_day)}, "
    return f"{way}: {size}{BASES[link.basis]}"


def _share(traffic: TrafficForecast) -> str:
    """Return how far compression makes the records smaller, as the end of a line, or "" if that is not known."""
    stored, records = traffic.source.bytes_a_day, traffic.record_bytes_a_day
    return f", {stored / records:.0%} of the uncompressed bytes" if stored and records else ""


def _uncounted(traffic: TrafficForecast) -> str:
    return f"{count_text(traffic.uncounted, 'partition')} with a log younger than an hour, or one that cannot be read"
