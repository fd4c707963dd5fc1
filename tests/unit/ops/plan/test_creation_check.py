"""Topics that a flow would create and its clusters would refuse."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import KafkaError

from lockstep_config.credentials.permissions import Access, needed_access
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import NewTopic, Outcome
from lockstep_kafka.common.errors import RequestRefused
from lockstep_ops.cluster_snapshot import ClusterSnapshot
from lockstep_ops.plan.rules.flow_facts import TopicReading
from lockstep_ops.plan.topic_reader import check_creations, missing_control_topics
from lockstep_rules.topic_plan import Selection, TopicSyncPlan
from tests.support.plan_facts import cluster, settings_for

STATE = "mm2-lockstep-state.A.internal"


@dataclass(frozen=True)
class FakeCluster:
    """`existing` topics are there, and we may not describe them."""

    alias: str
    access: Access
    existing: Sequence[str] = field(default=())

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool) -> Outcome[None]:
        assert validate_only
        code = KafkaError.TOPIC_ALREADY_EXISTS
        refusals = {
            topic.name: RequestRefused(self.alias, "create", f"topic {topic.name}", code, "exists")
            for topic in topics
            if topic.name in self.existing
        }
        return Outcome({topic.name: None for topic in topics if topic.name not in refusals}, refusals)


async def test_control_topic_that_is_hidden_is_a_missing_right() -> None:
    settings = settings_for()
    clusters = {
        alias: ClusterSnapshot(cast(Admin, FakeCluster(alias, needed_access(settings, alias), [STATE])))
        for alias in ("A", "B")
    }
    reading = TopicReading(cluster("A"), cluster("B"), Selection({}), TopicSyncPlan(()), (), {})
    control = missing_control_topics(settings, {"A": {}, "B": {}})
    check = await check_creations(settings, clusters, reading, control)
    (right,) = check.rights
    assert (right.cluster, right.lacks) == ("B", f"User:OURS lacks Read on topic {STATE} (the flow's state)")
    assert right.command.endswith(f"--operation Read --topic {STATE}")
    assert STATE not in {topic.name for topic in check.control}
    assert len(check.control) == len(control) - 1
