"""A transform keeps its connections to the JVM, and its version says what its records depend on."""

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.record_batch.layout import scan
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.transform.compiled_transform import CompiledTransform, PlannedTransform, TransformVersion
from lockstep_data_plane.transform.evaluation_answer import (
    EvaluationOptions,
    Filtered,
    Tombstones,
    TransformConnectionLost,
    TransformTimedOut,
)
from lockstep_data_plane.transform.sql_transform import SqlTransform, version_of
from lockstep_rules.statement_outline import COLUMNS
from lockstep_state.names import Flow
from tests.support.batch_bytes import GZIP, batch, record, records
from tests.support.message_sets import Message, message_set, sets
from tests.unit.data_plane.transform.test_evaluator import (
    TRANSFORM,
    Server,
    answer,
    read_frame,
)

OPTIONS = EvaluationOptions()
SECRETS = {"salt": b"pepper"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path / "socket")
    listening = await asyncio.start_unix_server(made, made.address[1])
    made.serve = whole
    yield made
    listening.close()


async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Every record is left: the batches of the request come back as one."""
    while True:
        writer.write(whole_answer(await read_frame(reader)))


def whole_answer(request: bytes) -> bytes:
    _, start, _, length = struct.unpack_from(">Bqii", request)
    batches = list(scan(request[17 + length :]))
    last = batches[-1].last_offset
    return answer(last, [(start, batches[0].record_count)], batch=bytes(batches[0].data))


def transform(server: Server, connections: int = 1) -> SqlTransform:
    return SqlTransform(TRANSFORM, "v", OPTIONS, SECRETS, connections=connections, find=lambda: server.address)


async def test_records_are_counted(server: Server) -> None:
    made = transform(server)
    answered = await made.transform([batch(records(0, 4))], 0, ("orders", 3))
    assert (answered.covers, answered.is_whole, answered.failures) == (3, True, ())
    assert [r.value for r in answered.records()] == [b"value-%d" % n for n in range(4)]
    assert (made.count.records_in, made.count.records_out, made.count.failed) == (9, 4, 0)
    assert made.evaluating_s > 0
    await made.close()


async def test_an_old_format_is_evaluated_in_the_present_one(server: Server) -> None:
    made = transform(server)
    (old,) = sets(message_set(1, [Message(5, b"k", b"a", 9), Message(6, None, b"b", 9)], GZIP))
    answered = await made.transform([old], 5, ("orders", 0))
    assert [(r.offset, r.key, r.value) for r in answered.records()] == [(5, b"k", b"a"), (6, None, b"b")]
    await made.close()


async def test_a_lost_connection_is_made_anew(server: Server) -> None:
    made = transform(server)

    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)

    server.serve = end
    with pytest.raises(TransformConnectionLost):
        await made.transform([batch(records(0, 1))], 0, ("orders", 0))
    server.serve = whole
    answered = await made.transform([batch(records(0, 1))], 0, ("orders", 0))
    assert answered.covers == 0
    await made.close()


async def test_a_jvm_that_stands_still_is_a_lost_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit is exceeded by an evaluation only: two of these end the copy of a partition."""
    monkeypatch.setattr("lockstep_data_plane.transform.sql_transform.CONNECTS_WITHIN_S", 0.2)
    server.greeting = b""
    with pytest.raises(TransformConnectionLost):
        await transform(server).transform([batch(records(0, 1))], 0, ("orders", 0))


async def test_a_cancelled_caller_leaves_the_connection_to_others(server: Server) -> None:
    made, was_asked, may_answer = transform(server), asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_frame(reader)
        was_asked.set()
        await may_answer.wait()
        writer.write(whole_answer(request))
        await whole(reader, writer)

    server.serve = slow
    asked = [asyncio.create_task(made.transform([batch(records(n, 1))], n, ("orders", 0))) for n in range(2)]
    await was_asked.wait()
    asked[0].cancel()
    may_answer.set()
    assert (await asked[1]).covers == 1
    await made.close()


def test_the_version_depends_on_options_and_secrets() -> None:
    compiled = CompiledTransform("S", b"", frozenset(), frozenset(), ("salt",), TransformVersion("d", "4.3.0", 17, "j"))
    version = version_of(compiled, OPTIONS, SECRETS)
    assert version == version_of(compiled, replace(OPTIONS, seconds=99.0), {**SECRETS, "other": b"x"})
    others = [
        version_of(compiled, replace(OPTIONS, tombstones=Tombstones.FILTER), SECRETS),
        version_of(compiled, replace(OPTIONS, filtered=Filtered.TOMBSTONE), SECRETS),
        version_of(compiled, OPTIONS, {"salt": b"other"}),
        version_of(replace(compiled, version=TransformVersion("e", "4.3.0", 17, "j")), OPTIONS, SECRETS),
    ]
    assert len({version, *others}) == 5
    assert "pepper" not in version


async def test_a_jvm_that_reads_no_more_is_given_up(server: Server) -> None:
    """Requests that the sockets do not take any more wait behind an evaluation that never ends."""
    stuck = asyncio.Event()

    async def stand_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        await stuck.wait()

    server.serve = stand_still
    options = replace(OPTIONS, seconds=-0.8)
    made = SqlTransform(TRANSFORM, "v", options, SECRETS, find=lambda: server.address)
    large = batch([record(0, b"x" * 1_000_000)])
    try:
        async with asyncio.timeout(5):
            asked = [made.transform([large], 0, ("orders", number)) for number in range(8)]
            first, *others = await asyncio.gather(*asked, return_exceptions=True)
            assert isinstance(first, TransformTimedOut)
            assert {type(each) for each in others} == {TransformConnectionLost}
            server.serve = whole
            assert (await made.transform([large], 0, ("orders", 0))).covers == 0
            await made.close()
    finally:
        stuck.set()


def test_a_slot_knows_which_columns_a_statement_makes_anew(tmp_path: Path) -> None:
    """What a statement masks is left out of the quarantine. Of a statement that was not compiled nothing is known."""
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
        "lockstep.transform.pii.topics = t\nlockstep.transform.pii.sql = SELECT sha2(key, 256) AS key FROM records\n"
    )
    flow = load(file, {}).flow(Flow("A", "B"))
    compiled = replace(TRANSFORM, columns_written=frozenset({"key"}))
    for plans, made in (([PlannedTransform("pii", "v", compiled)], {"key"}), ([], COLUMNS)):
        found = SlotTransforms(flow, plans).find_evaluated("t")
        assert found is not None
        assert found.made_columns == made
