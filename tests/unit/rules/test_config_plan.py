"""The plan of topic configs: those that are set on the copy, and those that are left alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.filters import ConfigPropertyExclude
from lockstep_rules.topic_plan import TopicRules, alterations, creation_configs
from lockstep_state.topic_config import TopicConfig
from tests.support.topic_settings import NAMES, PREFIXED, default

SOURCE_DEFAULTS = replace(PREFIXED, config_properties=ConfigPropertyExclude(use_defaults_from="source"))


def of_topic(name: str, value: str) -> TopicConfig:
    return TopicConfig(name, value, is_default=False, is_topics=True)


def of_brokers(name: str, value: str) -> TopicConfig:
    """A dynamic broker-wide value: neither Kafka's default nor the topic's own."""
    return TopicConfig(name, value, is_default=False)


def fixed(name: str, value: str) -> TopicConfig:
    """Read-only, sensitive, or from the broker's file."""
    return TopicConfig(name, value, is_default=False, copyable=False)


def test_mm2_124_new_topic_has_the_configs_set_on_the_source() -> None:
    configs = [
        of_topic("retention.ms", "5"),
        default("segment.ms"),
        of_brokers("compression.type", "lz4"),
        fixed("max.message.bytes", "9"),
        of_topic("min.insync.replicas", "2"),  # excluded by default
        of_topic("message.timestamp.type", "LogAppendTime"),  # excluded by default
    ]
    assert creation_configs(PREFIXED, configs) == {"retention.ms": "5", "compression.type": "lz4"}


def test_new_topic_gets_source_defaults_if_set() -> None:
    assert creation_configs(SOURCE_DEFAULTS, [default("segment.ms", "7")]) == {"segment.ms": "7"}


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        (of_topic("a", "1"), of_topic("a", "1"), {}),
        (of_topic("a", "1"), of_topic("a", "2"), {"a": "1"}),  # also when somebody changed the target by hand
        (of_topic("a", "1"), default("a", "1"), {"a": "1"}),  # equal today by chance: set on the topic, as MM2 does
        (of_topic("a", "1"), default("a", "2"), {"a": "1"}),
        (default("a", "1"), default("a", "2"), {}),
        (default("a", "1"), of_topic("a", "2"), {"a": None}),  # taken back at the source
        (default("a", "1"), of_topic("a", "1"), {"a": None}),
        (of_brokers("a", "1"), default("a", "2"), {"a": "1"}),
        (fixed("a", "1"), of_topic("a", "2"), {}),
        (of_topic("min.insync.replicas", "1"), of_topic("min.insync.replicas", "2"), {}),
        (default("min.insync.replicas", "1"), of_topic("min.insync.replicas", "2"), {}),
    ],
)
def test_mm2_121_config_that_differs_is_altered_only(
    source: TopicConfig, target: TopicConfig, change: dict[str, str | None]
) -> None:
    assert alterations(PREFIXED, [source], [target]) == change


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        (default("a", "1"), default("a", "2"), {"a": "1"}),
        (default("a", "1"), of_topic("a", "2"), {"a": "1"}),
        (default("a", "1"), of_topic("a", "1"), {}),
    ],
)
def test_mm2_123_source_defaults_are_forced_if_set(
    source: TopicConfig, target: TopicConfig, change: dict[str, str | None]
) -> None:
    assert alterations(SOURCE_DEFAULTS, [source], [target]) == change


def test_config_of_the_target_only_is_left_alone() -> None:
    assert alterations(PREFIXED, [], [of_topic("follower.replication.throttled.replicas", "*")]) == {}


CONFIGS = st.dictionaries(NAMES, st.tuples(st.sampled_from("123"), st.booleans()), max_size=6)


@given(source=CONFIGS, target=CONFIGS, rules=st.sampled_from([PREFIXED, SOURCE_DEFAULTS]))
def test_altering_once_is_enough(
    source: dict[str, tuple[str, bool]], target: dict[str, tuple[str, bool]], rules: TopicRules
) -> None:
    wanted = [TopicConfig(n, v, is_default=not own, is_topics=own) for n, (v, own) in source.items()]
    configs = {n: TopicConfig(n, v, is_default=not own, is_topics=own) for n, (v, own) in target.items()}
    for name, value in alterations(rules, wanted, configs.values()).items():
        configs[name] = default(name, "0") if value is None else of_topic(name, value)
    assert alterations(rules, wanted, configs.values()) == {}
