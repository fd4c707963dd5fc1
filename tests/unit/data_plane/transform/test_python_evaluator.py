"""A slot asks the process of a Python function: real processes, which hang, die, are killed and are replaced."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from lockstep_data_plane.core.record_transform import RecordFailure
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform import python_evaluator
from lockstep_data_plane.transform.evaluation_answer import (
    AnswerEnd,
    EvaluationOptions,
    Filtered,
    Tombstones,
    TransformAnswer,
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.python_evaluator import PythonEvaluator, PythonFunction
from lockstep_data_plane.transform.python_frames import LENGTHS, pack_frame, read_frame, read_lengths
from tests.support.batch_bytes import batch_bytes, decoded, record, records
from tests.support.eventually import eventually

FUNCTIONS = "tests.support.table_functions"
PATIENT = EvaluationOptions(seconds=60.0)

Connect = Callable[..., Awaitable[PythonEvaluator]]


@pytest.fixture
async def connect(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[4]))
    made: list[PythonEvaluator] = []

    async def connected(
        function: str, *, options: EvaluationOptions = PATIENT, secrets: dict[str, str] | None = None, version: str = ""
    ) -> PythonEvaluator:
        name = function if ":" in function else f"{FUNCTIONS}:{function}"
        evaluator = PythonEvaluator(PythonFunction(name, secrets or {}), options, version)
        await evaluator.start()
        made.append(evaluator)
        return evaluator

    yield connected
    for evaluator in made:
        await evaluator.close()


def left(answer: TransformAnswer) -> list[PlainRecord]:
    records_left = decoded(answer.batch) if answer.batch else []
    return [each._replace(offset=offset) for offset, each in zip(answer.offsets, records_left, strict=True)]


def pid_of(evaluator: PythonEvaluator) -> int:
    assert evaluator.pid is not None
    return evaluator.pid


async def test_records_come_back_as_one_batch(connect: Connect) -> None:
    evaluator = await connect("upper")
    first, second = batch_bytes(records(2, 3)), batch_bytes([record(7, b"x"), record(9, None)])
    answer = await evaluator.evaluate([first, memoryview(second)], 3, 1, "orders")
    assert [(each.offset, each.value) for each in left(answer)] == [
        (3, b"VALUE-3"),
        (4, b"VALUE-4"),
        (7, b"X"),
        (9, None),
    ]
    assert (answer.covers, answer.end, answer.records_read) == (9, AnswerEnd.WHOLE, 4)
    outgoing = answer.outgoing()
    assert outgoing is not None
    assert (list(outgoing.offsets), outgoing.covers, outgoing.base_timestamp) == ([3, 4, 7, 9], 9, 1000)
    assert evaluator.evaluating_s > 0


async def test_many_requests_are_answered_in_their_order(connect: Connect) -> None:
    evaluator = await connect("unchanged")
    answers = await asyncio.gather(*(evaluator.evaluate([batch_bytes([record(n)])], 0, n, "orders") for n in range(50)))
    assert [each.covers for each in answers] == list(range(50))
    assert not (await evaluator.evaluate([], 5, 0, "orders")).batch


async def test_options_are_those_of_the_transform(connect: Connect) -> None:
    content = [record(0), record(1, None), record(3)]
    dropping = EvaluationOptions(seconds=60, tombstones=Tombstones.FILTER)
    leaving = EvaluationOptions(seconds=60, filtered=Filtered.TOMBSTONE)
    for options, expected in ((PATIENT, [0, 1]), (dropping, [0]), (leaving, [0, 1, 3])):
        evaluator = await connect("even_offsets", options=options)
        answer = await evaluator.evaluate([batch_bytes(content)], 0, 0, "orders")
        assert [each.offset for each in left(answer)] == expected


async def test_secrets_are_an_argument_and_in_no_environment(connect: Connect) -> None:
    evaluator = await connect("signed", secrets={"salt": "pepper"})
    answer = await evaluator.evaluate([batch_bytes([record(0)])], 0, 0, "orders")
    assert left(answer)[0].value == b"v-pepper"
    process = psutil.Process(pid_of(evaluator))
    assert "pepper" not in " ".join([*process.environ().values(), *process.cmdline()])
    assert "pepper" not in repr(PythonFunction("a:b", {"salt": "pepper"}))


async def test_a_failed_record_has_the_function_and_no_value(connect: Connect) -> None:
    evaluator = await connect("fails_for_bad")
    answer = await evaluator.evaluate([batch_bytes([record(4), record(6, b"bad"), record(8)])], 0, 0, "orders")
    (failure,) = answer.failures
    assert (failure.offset, failure.condition) == (6, "ValueError")
    assert failure.fragment.startswith(f"{FUNCTIONS}:fails_for_bad (table_functions.py, line ")
    assert failure == RecordFailure(6, "ValueError", failure.fragment)
    assert (answer.covers, answer.end, [each.offset for each in left(answer)]) == (6, AnswerEnd.FAILURES, [4])


async def test_what_is_refused_leaves_the_process(connect: Connect) -> None:
    evaluator = await connect("fails_together")
    pid = evaluator.pid
    with pytest.raises(TransformRefused) as refused:
        await evaluator.evaluate([batch_bytes(records(0, 2))], 0, 0, "orders")
    assert refused.value.code == "NOT_BY_RECORD"
    assert (await evaluator.evaluate([batch_bytes(records(0, 1))], 0, 0, "orders")).covers == 0
    assert evaluator.pid == pid


@pytest.mark.parametrize(
    ("function", "code"),
    [("no_such_module:f", "FUNCTION_NOT_IMPORTED"), ("nothing", "FUNCTION_MISSING"), ("three", "FUNCTION_PARAMETERS")],
)
async def test_a_function_that_cannot_be_used_is_refused(connect: Connect, function: str, code: str) -> None:
    with pytest.raises(TransformRefused) as refused:
        await connect(function)
    assert refused.value.code == code


async def test_a_killed_process_is_replaced(connect: Connect) -> None:
    evaluator = await connect("unchanged")
    version = evaluator.version
    for _ in range(2):
        killed = pid_of(evaluator)
        os.kill(killed, signal.SIGKILL)
        assert isinstance(await _error_of(evaluator), TransformConnectionLost)
        answer = await evaluator.evaluate([batch_bytes(records(0, 2))], 0, 0, "orders")
        assert left(answer) == records(0, 2)
        assert pid_of(evaluator) != killed
        assert evaluator.version == version


async def test_a_process_that_dies_in_an_evaluation_is_named_and_replaced(connect: Connect) -> None:
    evaluator = await connect("dies_for_bad")
    bad = batch_bytes([record(0, b"bad")])
    with pytest.raises(TransformConnectionLost, match=r"dies_for_bad ended \(signal 9\)"):
        await evaluator.evaluate([bad], 0, 0, "orders")
    assert (await evaluator.evaluate([batch_bytes([record(0)])], 0, 0, "orders")).covers == 0


async def test_a_lack_of_memory_ends_the_process_and_says_nothing_of_records(connect: Connect) -> None:
    evaluator = await connect("has_no_memory")
    with pytest.raises(TransformConnectionLost, match="exit code 1"):
        await evaluator.evaluate([batch_bytes([record(0)])], 0, 0, "orders")


async def test_a_function_that_hangs_is_killed(connect: Connect) -> None:
    evaluator = await connect("hangs_for_slow", options=EvaluationOptions(seconds=1.0))
    hanging = pid_of(evaluator)
    slow = evaluator.evaluate([batch_bytes([record(0, b"slow")])], 0, 2, "orders")
    waiting = evaluator.evaluate([batch_bytes([record(0)])], 0, 3, "orders")
    timed_out, answer = await asyncio.gather(slow, waiting, return_exceptions=True)
    assert isinstance(timed_out, TransformTimedOut)
    assert "hangs_for_slow for orders-2 from 0 within 1 s" in str(timed_out)
    assert isinstance(answer, TransformAnswer), answer
    assert not psutil.pid_exists(hanging)


async def test_a_cancelled_request_is_not_answered_to_the_next_one(connect: Connect, tmp_path: Path) -> None:
    evaluator, hangs = await connect("hangs_for_slow"), tmp_path / "hangs"
    content = batch_bytes([record(0, b"slow", key=bytes(hangs))])
    slow = asyncio.create_task(evaluator.evaluate([content], 0, 0, "orders"))
    await eventually(hangs.exists, what="the function hangs")
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await evaluator.evaluate([batch_bytes([record(5)])], 0, 0, "orders")).covers == 5


async def test_other_files_under_a_running_slot_are_another_version(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "lockstep_masking.py"
    module.write_text("def mask(table):\n    return table\n")
    evaluator = await connect("lockstep_masking:mask")
    module.write_text("def mask(table):\n    return table.slice(1)\n")
    assert (await evaluator.evaluate([batch_bytes([record(5)])], 0, 0, "orders")).batch  # the loaded one goes on
    os.kill(pid_of(evaluator), signal.SIGKILL)
    while not isinstance(error := await _error_of(evaluator), TransformVersionDiffers):
        assert isinstance(error, TransformConnectionLost)
    assert evaluator.version.digest[:12] in str(error)
    assert evaluator.pid is None
    with pytest.raises(TransformVersionDiffers):
        await connect("lockstep_masking:mask", version=evaluator.version.digest)


async def _error_of(evaluator: PythonEvaluator) -> BaseException | None:
    try:
        await evaluator.evaluate([batch_bytes([record(5)])], 0, 0, "orders")
    except (TransformConnectionLost, TransformVersionDiffers) as exc:
        return exc
    return None


async def test_processes_of_one_function_have_one_version_and_make_the_same(connect: Connect) -> None:
    first, second = [await connect("knows_the_hash_of_a_text") for _ in range(2)]
    assert first.version == second.version
    assert (first.version.pyarrow, first.version.python.split()[1]) != ("", "")
    made = {(await each.evaluate([batch_bytes([record(0)])], 0, 0, "orders")).batch for each in (first, second)}
    assert len(made) == 1


async def test_what_a_function_prints_goes_nowhere(connect: Connect, capfd: pytest.CaptureFixture[str]) -> None:
    evaluator = await connect("prints")
    assert (await evaluator.evaluate([batch_bytes([record(0, b"4111")])], 0, 0, "orders")).batch
    await evaluator.close()
    assert capfd.readouterr() == ("", "")


async def test_a_closed_evaluator_leaves_no_process(connect: Connect) -> None:
    evaluator = await connect("unchanged")
    pid = pid_of(evaluator)
    await evaluator.close()
    assert not psutil.pid_exists(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the system ends the process there only")
async def test_the_process_ends_with_the_slot_in_the_middle_of_an_evaluation(tmp_path: Path) -> None:
    script, hangs = tmp_path / "slot.py", tmp_path / "hangs"
    script.write_text(
        "import asyncio\n"
        "from lockstep_data_plane.transform.python_evaluator import PythonEvaluator, PythonFunction\n"
        "from tests.support.batch_bytes import batch_bytes, record\n"
        "async def main():\n"
        f"    evaluator = PythonEvaluator(PythonFunction('{FUNCTIONS}:hangs_for_slow'))\n"
        "    await evaluator.start()\n"
        "    print(evaluator.pid, flush=True)\n"
        f"    await evaluator.evaluate([batch_bytes([record(0, b'slow', key={bytes(hangs)!r})])], 0, 0, 'orders')\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[4]
    slot = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert slot.stdout is not None
    child = psutil.Process(int(await slot.stdout.readline()))
    await eventually(hangs.exists, what="the function hangs")
    slot.kill()
    await slot.wait()
    await eventually(lambda: _has_ended(child), what="the process of the function ends")


def _has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # nobody asks for its exit code
    except psutil.NoSuchProcess:
        return True


async def test_no_process_can_be_started(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(TransformConnectionLost, match="no process was started for"):
        await connect("unchanged")


async def test_a_process_that_speaks_no_frames_is_given_up(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_evaluator, "CHILD", "this")  # a module that prints, and ends
    with pytest.raises(TransformConnectionLost, match="before the function was loaded"):
        await connect("unchanged")


def test_frames() -> None:
    parts = pack_frame({"kind": "a", "text": "ä"}, [b"x", memoryview(b"yz")])
    whole = b"".join(parts)
    size, fields_size = read_lengths(whole[: LENGTHS.size])
    assert size == len(whole) - LENGTHS.size
    fields, content = read_frame(whole[LENGTHS.size :], fields_size)
    assert (fields, bytes(content)) == ({"kind": "a", "text": "ä"}, b"xyz")


@pytest.mark.parametrize("front", [LENGTHS.pack(3, 4), LENGTHS.pack(1 << 31, 1)])
def test_what_is_no_frame_is_refused(front: bytes) -> None:
    with pytest.raises(ValueError, match="a frame of"):
        read_lengths(front)
