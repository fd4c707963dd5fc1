"""A config of a topic as Kafka describes it: a plain value, so that plans need no client library. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """An effective config of a topic.

    `copyable`: it is not read-only, not sensitive, and not from the broker's own file (`mm2-behaviour.md` §4.5).
    """

    name: str
    value: str
    is_default: bool
    """The value is Kafka's own default, set nowhere."""
    is_topics: bool = False
    """The value is set on the topic itself."""
    copyable: bool = True
    is_source_unknown: bool = False
    """The answer does not say where the value is set (DescribeConfigs before version 1)."""
