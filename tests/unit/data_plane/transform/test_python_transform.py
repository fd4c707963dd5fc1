"""A function in Python, from the settings of a flow to the records of a slot: slots accept what the driver plans."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import FlowSettings, load
from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_data_plane.core.evaluation import RefusedTransform
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.spark.flow_transforms import plan_function, transform_row
from lockstep_data_plane.transform.compiled_transform import PlannedTransform
from lockstep_data_plane.transform.evaluation_answer import (
    EvaluationOptions,
    TransformConnectionLost,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.python_transform import PythonTransform
from lockstep_rules.filters import NameFilter
from lockstep_rules.statement_outline import COLUMNS
from lockstep_state.names import Flow
from tests.support.batch_bytes import GZIP, batch, record, records
from tests.support.message_sets import Message, message_set, sets

FUNCTIONS = "tests.support.table_functions"

Make = Callable[..., PythonTransform]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[4]))


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[PythonTransform] = []

    def of(function: str, digest: str = "") -> PythonTransform:
        made.append(PythonTransform(f"{FUNCTIONS}:{function}", digest, "v", EvaluationOptions(), {"salt": "x"}))
        return made[-1]

    yield of
    for each in made:
        await each.close()


def settings(function: str, **more: Any) -> TransformSettings:
    return TransformSettings(name="pii", topics=NameFilter(("orders",)), python=f"{FUNCTIONS}:{function}", **more)


def flow_with(folder: Path, transform: TransformSettings) -> FlowSettings:
    file = folder / "mm2.properties"
    file.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    flow = load(file, {}).flow(Flow("A", "B"))
    return replace(flow, data_plane=replace(flow.data_plane, transforms=(transform,)))


async def test_records_are_counted(make: Make) -> None:
    transform = make("fails_for_bad")
    content = [record(0), record(2), record(3, b"bad"), record(5)]
    made = await transform.transform([batch(content, codec=GZIP)], 1, ("orders", 3))
    assert made.records() == [record(2)]
    assert (made.covers, made.is_whole, transform.version) == (3, False, "v")
    ((offset, condition, fragment),) = ((each.offset, each.condition, each.fragment) for each in made.failures)
    assert (offset, condition) == (3, "ValueError")
    assert "fails_for_bad" in fragment
    assert (transform.count.records_out, transform.count.failed) == (1, 1)
    assert transform.evaluating_s > 0


async def test_batches_of_former_formats_are_evaluated(make: Make) -> None:
    (source,) = sets(message_set(1, [Message(4, b"k", b"v", 7), Message(5, b"k", b"w", 8)], GZIP))
    made = await make("upper").transform([source], 0, ("orders", 3))
    assert made.records() == [PlainRecord(4, 7, b"k", b"V", ()), PlainRecord(5, 8, b"k", b"W", ())]


async def test_a_cancelled_caller_does_not_end_the_process_of_the_others(make: Make) -> None:
    transform = make("unchanged")
    await transform.transform([batch(records(0, 1))], 0, ("orders", 0))
    pid = transform._evaluator.pid
    cancelled = asyncio.create_task(transform.transform([batch(records(0, 1))], 0, ("orders", 0)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert (await transform.transform([batch(records(4, 1))], 0, ("orders", 1))).covers == 4
    assert transform._evaluator.pid == pid


async def test_a_process_with_other_files_than_the_drivers_is_refused(make: Make) -> None:
    with pytest.raises(TransformVersionDiffers):
        await make("unchanged", digest="of other files").transform([batch(records(0, 1))], 0, ("orders", 0))


async def test_what_the_driver_plans_is_evaluated_in_a_slot(tmp_path: Path) -> None:
    wanted = settings("signed", secrets={"salt": "pepper"}, tombstones="filter")
    plan = await plan_function(wanted)
    assert (plan.name, plan.refused, plan.compiled) == ("pii", "", None)
    transforms = SlotTransforms(flow_with(tmp_path, wanted), [plan])
    try:
        stage_transform = transforms.find_evaluated("orders")
        assert stage_transform is not None
        found = stage_transform.transform
        assert transforms.find("orders") is found
        assert stage_transform.made_columns == COLUMNS, "which columns it makes anew is not known"
        assert found.version == plan.version
        made = await found.transform([batch([record(0)])], 0, ("orders", 0))
        assert [each.value for each in made.records()] == [b"v-pepper"]
        ((name, version, records_in, records_out, *_),) = transforms.counts({})
        assert (name, version, records_in, records_out) == ("pii", plan.version, 1, 1)
        os.kill(transforms._evaluated["pii"]._evaluator.pid, signal.SIGKILL)  # type: ignore[union-attr,arg-type]  # it is Python's
        with pytest.raises(TransformConnectionLost):
            await found.transform([batch([record(0)])], 0, ("orders", 0))
        again = await found.transform([batch([record(0)])], 0, ("orders", 0))
        assert again.records() == made.records()
    finally:
        await transforms.close()


async def test_the_version_has_options_and_secrets_and_the_row_has_no_secret() -> None:
    first = settings("signed", secrets={"salt": "pepper"})
    others = [
        replace(first, secrets={"salt": "other"}),
        replace(first, tombstones="filter"),
        replace(first, filtered="tombstone"),
        replace(first, python=f"{FUNCTIONS}:upper"),
    ]
    plans = [await plan_function(each) for each in (first, *others)]
    assert len({plan.version for plan in plans}) == 5
    assert (await plan_function(replace(first, name="other", threads=4))).version == plans[0].version
    row = transform_row(first, plans[0])
    assert (row.function, row.transform_version, row.secrets) == (first.python, plans[0].version, ("salt",))
    assert (row.statement, row.refused) == ("", "")
    assert row.python
    assert row.pyarrow
    assert "pepper" not in repr(row) + repr(plans[0])


async def test_a_function_that_cannot_be_used_is_refused_in_the_plan(tmp_path: Path) -> None:
    wanted = settings("nothing")
    plan = await plan_function(wanted)
    assert plan.refused.startswith("FUNCTION_MISSING: ")
    assert transform_row(wanted, plan).refused == plan.refused
    found = SlotTransforms(flow_with(tmp_path, wanted), [plan]).find("orders")
    assert found is not None
    assert isinstance(found, RefusedTransform)


async def test_a_function_whose_process_always_ends_is_refused_in_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lockstep_ending.py").write_text("import os\nos._exit(7)\n")
    plan = await plan_function(replace(settings("x"), python="lockstep_ending:f"))
    assert plan == PlannedTransform(
        "pii", refused="the process of lockstep_ending:f ended (exit code 7) before the function was loaded"
    )
