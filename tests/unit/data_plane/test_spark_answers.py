"""A JVM of Spark that is frozen holds up nothing for ever: the process ends, and its supervisor starts both again."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark import session
from lockstep_data_plane.spark.session import SparkNotStarted, SparkSession


class FrozenJvm:
    """A context whose every question waits until `ends` is set."""

    def __init__(self) -> None:
        self.ends = threading.Event()

    def statusTracker(self) -> object:  # noqa: N802 - Spark's name
        self.ends.wait(30)
        raise OSError("the JVM has ended")

    @property
    def _jsc(self) -> object:
        return self.statusTracker()


@pytest.fixture
def frozen() -> Iterator[SparkSession]:
    jvm, spark = FrozenJvm(), SparkSession(SparkSettings(), 1)
    spark._context.set_result(jvm)
    yield spark
    jvm.ends.set()


async def test_question_to_a_frozen_jvm_ends_the_process(frozen: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "JVM_ANSWERS_S", 0.1)
    with pytest.raises(SparkNotStarted, match=r"does not answer within 0.1 s .* starts both again"):
        await frozen.free_cores()


class EndedJvm:
    """A context whose JVM was killed: each question finds its port closed."""

    _gateway = SimpleNamespace(proc=SimpleNamespace(wait=lambda seconds: -9))

    def __getattr__(self, name: str) -> object:
        raise ConnectionRefusedError(111, "Connection refused")


async def test_a_jvm_that_has_ended_is_named_whatever_is_asked() -> None:
    spark = SparkSession(SparkSettings(), 1)
    spark._context.set_result(EndedJvm())
    for asked in (spark.address(), spark.compile_statement("SELECT * FROM records")):
        with pytest.raises(SparkNotStarted, match=r"Spark's JVM ended \(killed by SIGKILL\), and its slots with it"):
            await asked
