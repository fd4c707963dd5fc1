"""One line for each event that matters."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from mode.services import Service

from lockstep_runtime.membership import faust_overrides
from lockstep_runtime.telemetry.log import FlowLog, LogFormat, configure


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def written(log_format: LogFormat, level: str = "info") -> tuple[FlowLog, io.StringIO]:
    stream = io.StringIO()
    configure("topic-sync", level, log_format, stream)
    return FlowLog("topic-sync", "A->B"), stream


def test_the_line_for_people() -> None:
    log, stream = written("text")
    log.info("topic created", "orders -> A.orders (8 partitions)", topic="orders")
    log.warn("cluster unreachable", "cluster B at b:9092 cannot be reached: refused")
    first, second = stream.getvalue().splitlines()
    assert first[8:] == " topic-sync A->B  topic created  orders -> A.orders (8 partitions)"
    assert second[8:] == (
        " topic-sync A->B  WARNING cluster unreachable  cluster B at b:9092 cannot be reached: refused"
    )


def test_the_line_for_machines() -> None:
    log, stream = written("json")
    log.info("topic created", "orders", topic="orders", partitions=8)
    body = json.loads(stream.getvalue())
    assert body.pop("at").endswith("Z")
    assert body == {
        "level": "info",
        "service": "topic-sync",
        "message": "topic created",
        "flow": "A->B",
        "text": "orders",
        "topic": "orders",
        "partitions": 8,
    }


@pytest.mark.parametrize(
    ("log_format", "level", "traced"), [("text", "info", 0), ("text", "debug", 1), ("json", "info", 0)]
)
def test_a_cause_is_one_line_and_its_traceback_for_debugging(log_format: LogFormat, level: str, traced: int) -> None:
    log, stream = written(log_format, level)
    try:
        raise LookupError("no such thing")
    except LookupError as exc:
        log.failed("crashed", exc)
    text = stream.getvalue()
    assert "LookupError: no such thing" in text
    assert text.count("Traceback") == traced


def test_libraries_are_silent_unless_debugging() -> None:
    _, stream = written("text")
    logging.getLogger("faust.app").error("Crashed reason=%r", ValueError())
    logging.getLogger("aiokafka.conn").error("unable to connect")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("level", "shown"), [("info", 0), ("debug", 1)])
def test_faust_starts_are_shown_at_debug_only(level: str, shown: int) -> None:
    """`logger.org.apache.kafka.clients.level = INFO` of a log4j2 configuration asks for the libraries' lines."""
    stream = io.StringIO()
    configure("topic-sync", "info", stream=stream, libraries=level)
    logging.getLogger("mode.services").info("[^-Consumer]: Starting...")
    logging.getLogger("aiokafka.consumer").info("Discovered coordinator 1 for group g")
    logging.getLogger("faust.app").warning("rebalance takes long")
    lines = stream.getvalue()
    assert lines.count("Starting...") == shown
    assert "Discovered coordinator" in lines
    assert "rebalance takes long" in lines


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_root_logger_info_of_libraries_is_debug(log_format: LogFormat) -> None:
    """py4j does, of each connection to a JVM that was killed."""
    _, stream = written(log_format)
    logging.getLogger().info("Exception while sending command.")
    logging.getLogger().warning("a warning is seen")
    assert "Exception" not in stream.getvalue()
    assert "a warning is seen" in stream.getvalue()
    _, stream = written(log_format, "debug")
    logging.getLogger().info("Exception while sending command.")
    assert "Exception" in stream.getvalue()


def test_each_subclass_of_faust_logs_as_the_library() -> None:
    services = [cls for cls in vars(faust_overrides).values() if isinstance(cls, type) and issubclass(cls, Service)]
    loggers = {cls.__name__: cls.logger.name for cls in services if cls.__module__ == faust_overrides.__name__}
    assert loggers.keys() >= {"App", "Consumer", "Thread", "SilentMonitor"}
    assert {logger.partition(".")[0] for logger in loggers.values()} == {"faust"}
