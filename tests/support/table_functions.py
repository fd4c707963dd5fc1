"""Functions from Arrow table to Arrow table, as users write them, and as they should not."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def unchanged(table: Any) -> Any:
    return table


def upper(table: Any) -> Any:
    """Values in capitals; all else stays."""
    value = pc.utf8_upper(table["value"].cast(pa.string()))
    return table.select(["offset"]).append_column("value", value)


def even(table: Any) -> Any:
    """Records of even offsets, all columns of them."""
    return table.filter(pc.equal(pc.bit_wise_and(table["offset"], 1), 0))


def even_offsets(table: Any) -> Any:
    """Records of even offsets, and nothing of them is made anew."""
    return even(table).select(["offset"])


def none(table: Any) -> Any:
    return table.slice(0, 0)


def remade(table: Any) -> Any:
    """Every column made anew from Python objects, with the same content."""
    return pa.Table.from_pylist(table.to_pylist(), schema=table.schema)


def signed(table: Any, secrets: Mapping[str, str]) -> Any:
    mark = pa.scalar(secrets["salt"].encode(), pa.binary())
    value = pc.binary_join_element_wise(table["value"], mark, pa.scalar(b"-", pa.binary()))
    return table.select(["offset"]).append_column("value", value)


def fails_for_bad(table: Any) -> Any:
    for value in table["value"].to_pylist():
        if value == b"bad":
            raise ValueError(f"this message has the value {value!r}")
    return table.select(["offset"])


def fails_together(table: Any) -> Any:
    if table.num_rows > 1:
        raise ValueError("only alone")
    return table


def leaves(table: Any) -> Any:
    raise SystemExit(3)


def hangs_for_slow(table: Any) -> Any:
    """Hang for the value `slow`. If the record's key is a path, there is a file of it from then on."""
    for row in table.select(["key", "value"]).to_pylist():
        if row["value"] == b"slow":
            if row["key"].startswith(b"/"):
                Path(row["key"].decode()).touch()
            time.sleep(600)
    return table


def dies_for_bad(table: Any) -> Any:
    if b"bad" in table["value"].to_pylist():
        os.kill(os.getpid(), signal.SIGKILL)
    return table


def has_no_memory(table: Any) -> Any:
    raise MemoryError


def prints(table: Any) -> Any:
    print(table["value"].to_pylist())  # noqa: T201  # it goes nowhere
    return table


def knows_the_hash_of_a_text(table: Any) -> Any:
    """A value that differs from process to process, unless hashes are pinned."""
    return table.select(["offset"]).append_column("value", pa.array([str(hash("a"))] * table.num_rows, pa.string()))


async def asynchronous(table: Any) -> Any:
    return table


def three(table: Any, secrets: Any, more: Any) -> Any:
    return table
