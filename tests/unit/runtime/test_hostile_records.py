"""Every reader of a control topic takes whatever lies there, goes on behind it, and keeps what it knew.

The codecs are in `test_control_rows.py` and `test_mm2_codec.py`. Here are those who read: services, slots and commands.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockstep_checkpoint.checkpoint_fold import WrittenCheckpoints
from lockstep_checkpoint.checkpoint_store import CheckpointStore
from lockstep_checkpoint.offset_sync_follower import OffsetSyncFollower
from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_data_plane.progress.committed_progress import CommittedProgress
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.slot.progress_rows import ProgressRows
from lockstep_kafka.topics.control_topics import checkpoints_topic
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.record_decoder import ROLES, decode
from lockstep_rules.offsets.run_translator import RunTranslator
from lockstep_runtime.flow.command_handler import CommandHandler
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.state.failing_parts import failing_parts
from lockstep_state.codecs.mm2_codec import (
    Checkpoint,
    OffsetSync,
    encode_checkpoint,
    encode_offset_sync,
    encode_source_progress,
)
from lockstep_state.commands.command import Command
from lockstep_state.events import Event
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import ROWS, MalformedRow, MirroredTopic, PartitionProgress, Row
from tests.support.control_records import GARBAGE, damaged, example
from tests.support.flow_context import flow_context

ROW = MirroredTopic(source_topic="t", target_topic="A.t", partitions=3)
KEYS = (b"", b"\xff", b"topic/", b"topic/\xff", b"partition/t/x", b"partition//0", b"partition/t/-1", b"leader/x", b"/")


def hostile_rows() -> Iterator[tuple[bytes, bytes]]:
    """Yield each kind of row with every wrong value, and garbage under right and wrong keys."""
    for kind in ROWS.values():
        key, value = example(kind).encode()
        yield from ((key, wrong) for wrong in (*damaged(value), *GARBAGE))
    yield from ((key, garbage) for key in KEYS for garbage in GARBAGE)


def records(pairs: Iterator[tuple[bytes, bytes]], topic: str = "state", first: int = 0) -> list[Record]:
    return [Record(topic, 0, first + number, key, value, 0) for number, (key, value) in enumerate(pairs)]


def read_all(read: Callable[[list[Record]], None], hostile: list[Record], *, one_by_one: bool = True) -> None:
    for record in hostile if one_by_one else ():
        read([record])
    read(hostile)


def test_state_of_a_service_survives_hostile_rows(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    translator = RunTranslator()
    ctx.state.listen(translator.apply)
    ctx.state.receive([Record("state", 0, 0, *ROW.encode(), 0)])
    ctx.state.receive(records(hostile_rows(), first=1))
    end = ctx.state.position
    ctx.state.receive([Record("state", 0, end + 1, *ROW.encode(), 0)])
    assert ctx.state.get(MirroredTopic, "t") == ROW
    assert ctx.unreadable.counts["state"] > 1_000
    states = DesiredStateView(ctx.state.rows)
    assert list(states.held_back()) is not None
    assert list(failing_parts(ctx.state.rows, states, ("topic-sync", "acl-sync", "heartbeat"))) is not None


@pytest.mark.parametrize("heal", [None, b"row"], ids=["tombstone", "new-value"])
def test_malformed_row_hides_nothing_and_is_written_again(tmp_path: Path, heal: bytes | None) -> None:
    """The row before it counts, its owner hears that compaction keeps another one, and any later record heals."""
    ctx = flow_context(tmp_path, "topic-sync")
    key, value = ROW.encode()
    ctx.state.receive([Record("state", 0, 0, key, value, 0), Record("state", 0, 1, key, b'{"version":1}', 0)])
    assert ctx.state.get(MirroredTopic, "t") == ROW
    assert ctx.state.differs(ROW)
    assert list(ctx.unreadable.present) == [
        "state partition 0 offset 1: state row 'topic/t': MirroredTopic.__init__() missing 2 required keyword-only "
        "arguments: 'source_topic' and 'target_topic'"
    ]
    ctx.state.receive([Record("state", 0, 2, key, value if heal else None, 0)])
    assert not list(ctx.unreadable.present)
    assert ctx.state.differs(ROW) is (heal is None)


def test_command_handler_survives_hostile_commands(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "topic-sync")

    async def carry_out(*_: object) -> None:
        raise AssertionError("nothing hostile is carried out")

    handler = CommandHandler(ctx, carry_out)
    key, value = Command(id="c", verb="pause", subject="topic:t", arguments={"a": 1}).encode()
    pairs = [(key, wrong) for wrong in (b'{"verb":"pause","subject":{"a":1}}', *damaged(value), *GARBAGE)]
    read_all(handler.receive_commands, records(iter(pairs), "commands"))
    assert ctx.unreadable.counts["commands"] > 100
    event = Event(kind="Paused", service="topic-sync", flow="A->B", answers="c").encode()[1]
    pairs = [(key, wrong) for wrong in (*damaged(event), *GARBAGE)]
    read_all(handler.fold_answers, records(iter(pairs), "events"))
    assert ctx.unreadable.counts["events"] > 50


def checkpoint_context(folder: Path) -> FlowContext:
    return flow_context(folder, "checkpoint", divided=True)


def mm2_records() -> Iterator[tuple[bytes | None, bytes | None]]:
    offsets = UpstreamOffset(5), DownstreamOffset(5)
    right = (
        encode_checkpoint(Checkpoint("g", "A.t", 0, *offsets)),
        encode_offset_sync(OffsetSync("t", 0, *offsets)),
        encode_source_progress("A", "t", 0, 5),
    )
    for key, value in right:
        yield from ((key, garbage) for garbage in (*GARBAGE, None))
        yield from ((garbage, value) for garbage in (*GARBAGE, None))
        yield from ((key, b"\xff" * size) for size in (2, 10, 16, 18))
        yield from ((key[:-4] + b"\xff" * 4, value), (key, value[:2] + b"\xff" * 8 + value[10:]))


def test_checkpoint_topics_survive_hostile_records(tmp_path: Path) -> None:
    ctx = checkpoint_context(tmp_path)
    hostile = [Record("topic", 0, offset, key, value, 0) for offset, (key, value) in enumerate(mm2_records())]
    store = CheckpointStore(ctx, checkpoints_topic(ctx.settings))
    written = WrittenCheckpoints()
    store.apply(written, hostile)
    assert written.malformed > 100
    syncs = OffsetSyncFollower(ctx, lambda: False)
    history = syncs.begin_fold()
    syncs.apply(history, hostile)
    assert syncs.malformed > 100
    assert ctx.unreadable.counts["topic"] > 100


def test_reverse_flow_survives_hostile_rows(tmp_path: Path) -> None:
    ctx = checkpoint_context(tmp_path)
    reverse = ReverseFlow(ctx, "state")
    fold = reverse.begin_fold()
    reverse.apply(fold, [Record("state", 0, 0, *ROW.encode(), 0), *records(hostile_rows(), first=1)])
    assert fold.rows.get(MirroredTopic, "t") == ROW
    assert ctx.unreadable.counts["state"] > 500


def test_progress_of_connect_survives_hostile_records() -> None:
    malformed: list[int] = []
    progress = CommittedProgress(lambda offset, error: malformed.append(offset))
    progress._apply(PlainRecord(0, -1, *pair, ()) for pair in mm2_records())
    key, _ = encode_source_progress("A", "t", 0, 5)
    values = (b'{"offset":7}', b"[", b'{"offset":NaN}', b"\xff")
    progress._apply(PlainRecord(offset, -1, key, value, ()) for offset, value in enumerate(values, 1000))
    assert malformed[-3:] == [1001, 1002, 1003]
    assert progress.offsets.for_connector("MirrorSourceConnector")[key].offset == 7
    assert len(malformed) > 100
    for reset in (b'{"offset":-1}', b"{}", b'{"offset":null}', None):
        progress._apply([PlainRecord(0, -1, key, b'{"offset":7}', ()), PlainRecord(1, -1, key, reset, ())])
        assert key not in progress.offsets.for_connector("MirrorSourceConnector")


def test_progress_rows_survive_hostile_rows() -> None:
    rows, kept = ProgressRows(), PartitionProgress(topic="t", partition=1, upstream=7, producer_epoch=3)
    rows.fold(*kept.encode())
    refused = 0
    for key, value in hostile_rows():
        try:
            rows.fold(key, value)
        except MalformedRow:
            refused += 1
    assert refused > 10
    assert rows["t", 1] == kept
    assert all(isinstance(rows.get(tp), PartitionProgress | None) for tp in list(rows))


@pytest.mark.parametrize("asked", [False, True], ids=["bytes", "decoded"])
def test_malformed_progress_row_leaves_the_one_before_it(asked: bool) -> None:
    """A slot keeps rows as bytes. One that looks right and is not is found out when somebody asks."""
    malformed: list[MalformedRow] = []
    rows, row = ProgressRows(malformed.append), PartitionProgress(topic="t", partition=1, upstream=7, producer_epoch=3)
    key, value = row.encode()
    rows.fold(key, value)
    assert not asked or rows["t", 1] == row
    rows.fold(key, value.replace(b'"upstream":7', b'"upstream":"8"'))
    assert rows["t", 1] == row
    assert len(malformed) == 1
    assert rows["t", 1] == row
    assert len(malformed) == 1
    rows.fold(key, value.replace(b'"upstream":7', b'"upstream":9'))
    assert rows["t", 1].upstream == 9


def test_progress_that_was_never_right_is_none() -> None:
    rows = ProgressRows()
    key, value = PartitionProgress(topic="t", partition=1).encode()
    rows.fold(key, value.replace(b'"upstream":-1', b'"upstream":null'))
    assert rows.get(("t", 1)) is None


@pytest.mark.parametrize("role", sorted(ROLES))
def test_watch_shows_every_hostile_record(role: str) -> None:
    kinds: list[type[Row | Event | Command]] = [*ROWS.values(), Event, Command]
    pairs: list[tuple[bytes | None, bytes | None]] = [*mm2_records()]
    for kind in kinds:
        key, value = example(kind).encode()
        pairs += [(key, wrong) for wrong in damaged(value)]
    for key, value in pairs:
        shown = decode(role, key, value)
        "".join((shown.kind, shown.about, shown.text)).encode()
