"""What the guard of control topics makes of settings that a cluster does not let it set right."""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import Outcome, TopicDescription
from lockstep_kafka.common.errors import RequestRefused
from lockstep_kafka.topics.control_topic_faults import ControlTopicUnfit
from lockstep_kafka.topics.control_topics import OUR_TIME, ControlTopic
from lockstep_runtime.membership.control_topic_guard import ControlTopicGuard
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code
from lockstep_state.topic_config import TopicConfig
from tests.support.flow_context import flow_context

STATE = ControlTopic("state", configs={"cleanup.policy": "compact", **OUR_TIME})


class Fixed(Admin):
    """A cluster that lets nobody alter the configs of its topic `state`."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        super().__init__("T", {"bootstrap.servers": "t:9092"})
        self._configs = configs

    async def topics(self, names: Iterable[str] | None = None) -> Outcome[TopicDescription]:
        return Outcome({"state": TopicDescription("state", "id", 1, 1)})

    async def config_pieces(self, topics: Iterable[str]) -> AsyncIterator[Outcome[tuple[TopicConfig, ...]]]:
        configs = tuple(TopicConfig(key, value, is_default=False) for key, value in self._configs.items())
        yield Outcome(dict.fromkeys(topics, configs))

    async def alter_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        refusal = RequestRefused("T", "alter configs of", "topic state", Code.POLICY_VIOLATION, "fixed")
        return Outcome(failed=dict.fromkeys(changes, refusal))


async def test_refused_setting_that_only_helps_is_no_trouble(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "heartbeat")
    guard = ControlTopicGuard(ctx, ["state"])
    await guard.check(Fixed({"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}), [STATE])
    assert ctx.periodic.troubles.now == {}


async def test_refused_setting_without_which_rows_are_lost_ends_the_work(tmp_path: Path) -> None:
    guard = ControlTopicGuard(flow_context(tmp_path, "heartbeat"), ["state"])
    with pytest.raises(ControlTopicUnfit, match=r"cleanup\.policy=delete"):
        await guard.check(Fixed({"cleanup.policy": "delete"}), [STATE])
