"""Every function of Spark's is allowed or refused, and an allowed one gives the same result in every JVM.

The second JVM has another clock, another time zone, another language and another user.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep_data_plane.transform.compiler import TransformCompiler
from lockstep_data_plane.transform.jar import JAR
from tests.support.shifted_clock import ShiftedClock, can_shift
from tests.support.transform_jvm import (
    UNFOLDED,
    TransformJvm,
    evaluated_examples,
    example_expressions,
    registered_functions,
)

LISTS = Path(__file__).resolve().parents[3] / "services" / "data-plane" / "java" / "lockstep" / "transform"

MORE = {
    "!": "! true", "%": "7 % 4", "&": "6 & 3", "*": "2 * 3", "+": "2 + 3", "-": "2 - 3", "/": "3 / 2", "<": "1 < 2",
    "<=": "1 <= 2", "<=>": "NULL <=> 1", "=": "1 = 2", "==": "1 == 1", ">": "1 > 2", ">=": "1 >= 2", "^": "6 ^ 3",
    "|": "6 | 3", "~": "~ 5", "<<": "1 << 3", ">>": "-8 >> 1", ">>>": "-8 >>> 1", "<>": "1 <> 2", "!=": "1 != 2",
    "||": "'a' || 'b'", "case": "CASE WHEN true THEN 'x' ELSE 'y' END", "and": "true AND NULL", "or": "false OR true",
    "not": "NOT false", "between": "2 BETWEEN 1 AND 3", "in": "2 IN (1, 2)", "like": "'abc' LIKE 'a%'",
    "bigint": "bigint('5')", "binary": "binary('a')", "boolean": "boolean('true')", "date": "date('2020-02-03')",
    "decimal": "decimal(1.5)", "double": "double('1.5')", "float": "float('1.5')", "int": "int('5')",
    "smallint": "smallint('5')", "string": "string(1.5D)", "timestamp": "timestamp('2020-02-03 04:05:06')",
    "tinyint": "tinyint('5')", "raise_error": "nvl('x', raise_error('y'))",
    "when": "CASE WHEN 1 > 2 THEN 'x' END", "struct": "struct(1, 'a')", "ilike": "'ABC' ILIKE 'a%'",
}  # fmt: skip
"""What has no example, or one that needs more than itself."""


def listed(name: str) -> set[str]:
    return set((LISTS / f"{name}.txt").read_text().split())


def test_every_function_is_allowed_or_refused(jvm: TransformJvm) -> None:
    """A new Spark has new functions: decide for each whether its result depends on its arguments alone."""
    registered = set(registered_functions(jvm.context))
    allowed, refused = listed("functions-allowed"), listed("functions-refused")
    assert registered - allowed - refused == set(), "in neither list"
    assert (allowed | refused) - registered == set(), "no function of this Spark"


def expressions_of(jvm: TransformJvm) -> dict[str, list[str]]:
    documented, allowed = registered_functions(jvm.context), sorted(listed("functions-allowed"))
    return {name: [MORE[name]] if name in MORE else example_expressions(documented[name]) for name in allowed}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not can_shift(), reason="there is no C compiler to shift a clock")
def test_an_allowed_function_gives_the_same_in_every_jvm(jvm: TransformJvm, tmp_path: Path) -> None:
    examples = expressions_of(jvm)
    expressions = sorted({one for some in examples.values() for one in some})
    unfolded = TransformJvm(jvm.context, TransformCompiler(jvm.context, UNFOLDED))
    here = evaluated_examples(unfolded, expressions)
    clock = ShiftedClock(tmp_path)
    clock.set(-40_000_000)
    options = ["-Duser.timezone=Asia/Kathmandu", "-Duser.language=tr", "-Duser.country=TR", "-Duser.name=somebody"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.transform_jvm", *options],
        input=json.dumps(expressions),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **clock.environment(), "HADOOP_USER_NAME": "somebody", "TZ": "Asia/Kathmandu"},
    )
    there = json.loads(ran.stdout.splitlines()[-1])
    assert there == here
    without = [
        name
        for name, some in examples.items()
        if not any(not here[one].startswith(("failed", "refused")) for one in some)
    ]
    assert without == [], {name: [here[one] for one in examples[name]] for name in without}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_statement_has_the_same_version_in_every_jvm(jvm: TransformJvm) -> None:
    statement = "SELECT to_json(map('b', 1, 'a', 2)) AS value FROM records WHERE json_int(value, '$.n') IN (3, 1, 2)"
    program = (
        "import sys; from tests.support.transform_jvm import running\n"
        "with running() as jvm: sys.stdout.write(jvm.compile(sys.argv[1]).version.digest)"
    )
    ran = subprocess.run([sys.executable, "-c", program, statement], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == jvm.compile(statement).version.digest


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_jvm_that_dies_is_a_lost_connection() -> None:
    program = """
import asyncio, os, signal, sys
from lockstep_data_plane.transform.evaluator import (TransformEvaluator)
from tests.support.batch_bytes import batch_bytes, record
from tests.support.transform_jvm import running

async def main(jvm):
    transform = jvm.compile("SELECT * FROM records")
    server = jvm.server
    evaluator = await jvm.connect(transform)
    batch = batch_bytes([record(0)])
    assert (await evaluator.evaluate([batch], 0, 0, "t")).covers == 0
    os.kill(server[0], signal.SIGKILL)
    for _ in range(2):
        try:
            await evaluator.evaluate([batch], 0, 0, "t")
        except TransformConnectionLost:
            sys.stdout.write("lost ")
    try:
        await TransformEvaluator.connect(server, transform)
    except TransformConnectionLost:
        sys.stdout.write("none")
    sys.stdout.flush()
    os._exit(0)

with running() as jvm:
    asyncio.run(main(jvm))
"""
    ran = await asyncio.to_thread(
        lambda: subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    )
    assert ran.stdout.endswith("lost lost none"), ran.stderr[-2000:]


def test_the_jar_is_there() -> None:
    assert JAR.is_file(), "`make setup` compiles it"
