"""Filters and policies as somebody writes them, for `test_python_classes`."""

from collections.abc import Mapping
from typing import Any

from lockstep_rules.policy import DefaultReplicationPolicy, ReplicationPolicy


class Regional:
    """Topics of the regions that its own property lists."""

    own_keys = ("example.regions",)

    def configure(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)
        self._regions = tuple(properties.get("example.regions", "eu").split(","))

    def should_replicate_topic(self, topic: str) -> bool:
        return topic.startswith(self._regions)


class NeedsTopics:
    def configure(self, properties: Mapping[str, str]) -> None:
        self._begin = properties["topics"]

    def should_replicate_topic(self, topic: str) -> bool:
        return topic.startswith(self._begin)


class NoGroups:
    def should_replicate_group(self, group: str) -> bool:
        return False


class OnlyRetention:
    def should_replicate_config_property(self, name: str) -> bool:
        return name == "retention.ms"


class Suffixed(ReplicationPolicy):
    """`orders` of A is `orders@A`... but for what a topic's name may hold."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}--{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        name, marks, alias = topic.rpartition("--")
        return alias if marks and name else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("--")[0] if self.topic_source(topic) else None


class ShortInternal(DefaultReplicationPolicy):
    def checkpoints_topic(self, source_alias: str) -> str:
        return f"cp{self.separator}{source_alias}"


class Forgetful(Suffixed):
    def topic_source(self, topic: str) -> str | None:
        return None


class Keeping(Suffixed):
    keeps_names = True


class Unfinished(ReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic


class Half:
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic


class Refuses:
    def __init__(self) -> None:
        raise RuntimeError("no licence")


class Recording:
    """What it was given gets into what it raises."""

    def configure(self, properties: Mapping[str, str]) -> None:
        raise ValueError(f"cannot log in with {properties['source.cluster.ssl.key.password']}")

    def should_replicate_topic(self, topic: str) -> bool:
        return True


class Later:
    """Answers when the file is read, and fails afterwards."""

    def should_replicate_topic(self, topic: str) -> Any:
        if topic == "t":
            return True
        if topic == "odd":
            return None
        raise KeyError(topic)


class Silent:
    def should_replicate_topic(self, topic: str) -> Any:
        """Forgot to answer."""


NOT_A_CLASS = 5
