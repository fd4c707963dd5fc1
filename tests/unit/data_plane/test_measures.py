"""Counters of the driver go on over restarts of slots, whose own begin at zero."""

from lockstep_data_plane.measures import Measures
from lockstep_protocol.names import Flow
from lockstep_protocol.state import PartitionProgress
from lockstep_runtime.metrics import Metrics


class Context:
    """What `Measures` needs of a flow's context."""

    flow = Flow("A", "B")
    metrics = Metrics()


def test_a_run_with_more_records_in_fewer_bytes_is_a_new_run() -> None:
    measures = Measures(Context())  # type: ignore[arg-type]  # the two attributes it reads
    for records, size in ((100, 9_000), (120, 5_000), (10, 500), (30, 1_500)):
        measures.update([PartitionProgress(topic="t", partition=0, records=records, bytes=size)])
    page = Context.metrics.exposition().decode().splitlines()
    ends = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in page if "{" in line}
    assert ends["lockstep_records_total"] == 100 + 120 + 30
    assert ends["lockstep_bytes_total"] == 9_000 + 5_000 + 1_500
