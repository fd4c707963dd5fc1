"""What becomes of requests that a cluster does not know."""

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigResource

from lockstep_kafka.admin.acl_reader import AclsUnsupported, read_acls
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.admin_requests import REACH
from lockstep_kafka.admin.operation_requests import said_operations
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.errors import ClusterUnreachable, RequestRefused, RequestUnsupported
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.topic_config import TopicConfig
from tests.support.ports import free_port

UNKNOWN = KafkaError(KafkaError._UNSUPPORTED_FEATURE, "not supported by broker")
CLOSED = KafkaError(KafkaError._TRANSPORT, "Disconnected")
LOG_DIRS = ("describe", "topic t")


class Answering(Admin):
    """A cluster that answers a question for its brokers, or does not."""

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__("T", {"bootstrap.servers": "t:9092"})
        self.answers = answers

    async def _metadata(self, within_s: float, topic: str | None = None) -> Any:
        if not self.answers:
            raise ClusterUnreachable("T", "t:9092", "away")
        return SimpleNamespace(brokers={1: None}, topics={})


@pytest.mark.parametrize("code", [KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION])
async def test_request_that_brokers_do_not_know_is_unsupported(code: int) -> None:
    trouble = await Answering()._trouble(KafkaError(code), *LOG_DIRS)
    assert isinstance(trouble, RequestUnsupported)
    assert trouble.to_reason().code == ReasonCode.REQUEST_UNSUPPORTED
    assert str(trouble) == "cluster T does not know the request to describe topic t"


async def test_connection_that_is_closed_twice_at_a_request_is_unsupported() -> None:
    admin = Answering()
    assert isinstance(await admin._trouble(CLOSED, *LOG_DIRS), ClusterUnreachable), "once may be chance"
    assert isinstance(await admin._trouble(CLOSED, "alter configs of", "topic t"), ClusterUnreachable)
    assert isinstance(await admin._trouble(CLOSED, *LOG_DIRS), RequestUnsupported)


async def test_closed_connection_of_a_cluster_that_is_away_is_unreachable() -> None:
    admin = Answering(answers=False)
    for operation, resource in (LOG_DIRS, REACH):
        for _ in range(3):
            assert isinstance(await admin._trouble(CLOSED, operation, resource), ClusterUnreachable)


async def test_connections_that_are_closed_far_apart_are_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    admin, now = Answering(), time.monotonic()
    for minutes in range(3):
        monkeypatch.setattr(time, "monotonic", lambda: now + 60.1 * minutes)  # noqa: B023  # called in this turn
        assert isinstance(await admin._trouble(CLOSED, *LOG_DIRS), ClusterUnreachable)


READ = SimpleNamespace(authorized_operations=[SimpleNamespace(name="READ")])
NOTHING = SimpleNamespace(authorized_operations=None)
"""librdkafka's word for nothing at all, and for an answer that does not say it."""


@pytest.mark.parametrize(
    ("described", "says", "known"),
    [(NOTHING, False, None), (NOTHING, True, frozenset()), (READ, False, frozenset({"READ"}))],
)
async def test_operations_on_a_cluster_that_are_left_out_differ_from_none(
    described: Any, says: bool, known: frozenset[str] | None
) -> None:
    admin = Answering()
    admin._says_operations = says
    assert await admin.known_operations(described) == known


def test_operations_on_a_topic_that_are_left_out_are_unknown() -> None:
    assert said_operations(NOTHING) is None
    assert said_operations(READ) == frozenset({"READ"})


async def test_operations_of_brokers_that_are_silent_count_as_none() -> None:
    admin = Admin("T", {"bootstrap.servers": f"127.0.0.1:{free_port()}"})
    assert await admin.known_operations(NOTHING) == frozenset()


async def test_acls_of_a_cluster_without_such_requests_are_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(_admin: Admin, _resource: str) -> frozenset[Any]:
        raise RequestUnsupported("T", "describe ACLs of", "topic resources", UNKNOWN.code(), "")

    monkeypatch.setattr(Admin, "describe_acls", unknown)
    with pytest.raises(AclsUnsupported, match="does not know requests about ACLs"):
        await read_acls(Answering(), {"TOPIC"})


class WithoutIncrements(Answering):
    """A cluster without IncrementalAlterConfigs. `sets`: whether it says what is set on a topic."""

    def __init__(self, *, reports: bool = True) -> None:
        super().__init__()
        self.reports = reports
        self.written: dict[str, Mapping[str, str]] = {}

    async def _alter_some(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        unknown: RequestRefused = RequestUnsupported("T", "alter configs of", "topic t", UNKNOWN.code(), "")
        return Outcome(failed=dict.fromkeys(changes, unknown))

    async def config_pieces(self, topics: Iterable[str]) -> AsyncIterator[Outcome[tuple[TopicConfig, ...]]]:
        there = (
            TopicConfig(
                "retention.ms", "1", is_default=False, is_topics=self.reports, is_source_unknown=not self.reports
            ),
            TopicConfig("flush.ms", "2", is_default=False, is_topics=self.reports),
            TopicConfig("segment.ms", "3", is_default=True),
        )
        yield Outcome(dict.fromkeys(topics, there))

    async def _connected(self) -> Any:
        return SimpleNamespace(alter_configs=self._write)

    def _write(self, resources: list[ConfigResource], **_limits: Any) -> dict[Any, Any]:
        self.written = {resource.name: dict(resource.set_config_dict) for resource in resources}
        return {}


async def test_configs_are_written_as_a_whole_without_increments() -> None:
    admin = WithoutIncrements()
    await admin.alter_configs({"t": {"retention.ms": "9", "flush.ms": None}})
    assert admin.written == {"t": {"retention.ms": "9"}}, "what was set stays, and defaults are not set"


async def test_configs_are_left_where_nobody_reports_what_is_set() -> None:
    admin = WithoutIncrements(reports=False)
    outcome = await admin.alter_configs({"t": {"retention.ms": "9"}})
    assert isinstance(outcome.failed["t"], RequestUnsupported)
    assert admin.written == {}
