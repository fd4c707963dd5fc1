"""Settings of topic-sync that its plans are made with."""

from hypothesis import strategies as st

from lockstep_rules.filters import DEFAULT_TOPICS_EXCLUDE, ConfigPropertyExclude, NameFilter
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_rules.topic_plan import (
    TopicRules,
)
from lockstep_state.names import Flow
from lockstep_state.topic_config import TopicConfig

PREFIXED = TopicRules(
    flow=Flow("A", "B"),
    policy=DefaultReplicationPolicy(),
    topics=NameFilter((".*",), DEFAULT_TOPICS_EXCLUDE),
    config_properties=ConfigPropertyExclude(),
)


NAMES = st.text("abc", min_size=1, max_size=3)


def default(name: str, value: str = "d") -> TopicConfig:
    return TopicConfig(name, value, is_default=True)
