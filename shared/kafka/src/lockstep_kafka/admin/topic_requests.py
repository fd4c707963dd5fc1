"""Admin requests about topics and their configs."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
)
from confluent_kafka.admin import NewTopic as ConfluentNewTopic

from lockstep_kafka.admin.operation_requests import OperationRequests, said_operations
from lockstep_kafka.admin.request_pieces import ask_in_pieces, merge_outcomes
from lockstep_kafka.common.admin_types import NewTopic, Outcome, TopicDescription
from lockstep_kafka.common.errors import ClusterError, RequestRefused, RequestUnsupported
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.topic_config import TopicConfig

DESCRIBED_AT_ONCE = 500
"""Topics in one request that describes them."""

CHANGED_AT_ONCE = 200
"""Topics in one request that creates or changes them, or that reads their configs (35 to a topic)."""

ALTERS_CONFIGS = "alter configs of"


class TopicRequests(OperationRequests):
    async def topic_names(self) -> dict[str, int]:
        """Return every topic that we may describe, with its partition count.

        It takes one Metadata request, which is cheap enough for every second.
        """
        metadata = await self._list_topics("list", "topics", self._quick, None)
        # A topic in deletion is still listed, with an error and no partitions.
        return {name: len(t.partitions) for name, t in metadata.topics.items() if t.error is None and t.partitions}

    async def topics(self, names: Iterable[str] | None = None) -> Outcome[TopicDescription]:
        """Return the topics called `names`, or all topics, with their topic ids.

        A topic that does not exist, or cannot exist by its name, is absent from the outcome. One that exists and may
        not be described is in `denied`.
        """
        requested = sorted(await self.topic_names() if names is None else set(names))
        outcome = await merge_outcomes(ask_in_pieces(requested, DESCRIBED_AT_ONCE, self._describe))
        # A topic with an invalid name, for example one that is too long, cannot exist.
        nowhere = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION)
        failed = {name: trouble for name, trouble in outcome.failed.items() if trouble.code not in nowhere}
        return Outcome(outcome.done, failed, outcome.denied)

    async def topic(self, name: str) -> TopicDescription | None:
        """Return the topic, or None if it does not exist.

        Raises:
            NotPermitted: It may not be described.
            RequestRefused: The cluster refused the request.
        """
        return (await self.topics([name])).require_done().get(name)

    async def _describe(self, names: Sequence[str]) -> Outcome[TopicDescription]:
        futures = (await self._connected()).describe_topics(TopicCollection(list(names)), request_timeout=self._timeout)
        outcome = await self._collect(futures, "describe", lambda name: f"topic {name}", str)
        descriptions: dict[str, TopicDescription] = {}
        for name, topic in outcome.done.items():
            replicas = min((len(partition.replicas) for partition in topic.partitions), default=0)
            in_sync = tuple(len(partition.isr) for partition in topic.partitions)
            topic_id = _as_kafka_prints(topic.topic_id)
            descriptions[name] = TopicDescription(name, topic_id, len(topic.partitions), replicas, in_sync)
        return Outcome(descriptions, outcome.failed, outcome.denied)

    async def topic_operations(self, names: Iterable[str]) -> Outcome[frozenset[str]]:
        """Return the operations that we may do with each topic, in Kafka's upper-case words.

        If the cluster has no authorizer, all operations are returned. A topic that does not exist, or that we may not
        describe, is in `failed` or `denied`. It is absent from the outcome if the brokers do not report operations.
        """
        return await merge_outcomes(ask_in_pieces(sorted(set(names)), DESCRIBED_AT_ONCE, self._topic_operations))

    async def _topic_operations(self, names: Sequence[str]) -> Outcome[frozenset[str]]:
        futures = (await self._connected()).describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=self._timeout
        )
        outcome = await self._collect(futures, "describe", lambda name: f"topic {name}", str)
        done = {name: said_operations(described) for name, described in outcome.done.items()}
        operations_by_topic = {name: operations for name, operations in done.items() if operations is not None}
        return Outcome(operations_by_topic, outcome.failed, outcome.denied)

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Outcome[None]:
        """Create each topic.

        One that exists already is in `failed` with code TOPIC_ALREADY_EXISTS: see `is_existing_topic`.
        """

        async def create(piece: Sequence[NewTopic]) -> Outcome[None]:
            new = [
                ConfluentNewTopic(
                    t.name, num_partitions=t.partitions, replication_factor=t.replication_factor, config=t.configs
                )
                for t in piece
            ]
            futures = (await self._connected()).create_topics(
                new, operation_timeout=self._timeout, request_timeout=self._timeout, validate_only=validate_only
            )
            return await self._collect(futures, "create", lambda name: f"topic {name}", str)

        return await merge_outcomes(ask_in_pieces(topics, CHANGED_AT_ONCE, partial(self._again_if_closed, create)))

    async def delete_topics(self, names: Iterable[str]) -> Outcome[None]:
        """Delete each topic.

        One that does not exist is in `failed`.
        """
        topics = sorted(set(names))
        if not topics:
            return Outcome()
        futures = (await self._connected()).delete_topics(
            topics, operation_timeout=self._timeout, request_timeout=self._timeout
        )
        return await self._collect(futures, "delete", lambda name: f"topic {name}", str)

    @staticmethod
    def is_existing_topic(trouble: ClusterError) -> bool:
        """Return whether a creation was refused only because the topic exists already."""
        return isinstance(trouble, RequestRefused) and trouble.code == KafkaError.TOPIC_ALREADY_EXISTS

    @staticmethod
    def may_be_refused_configs(trouble: ClusterError) -> bool:
        """Return whether a topic may be refused for its configs.

        The brokers do not know a key, or the brokers or their operator's policy do not allow a value. The code is
        INVALID_REQUEST for a bad value in an AlterConfigs request.
        """
        return isinstance(trouble, RequestRefused) and trouble.code in (
            KafkaErrorCode.INVALID_CONFIG,
            KafkaErrorCode.INVALID_REQUEST,
            KafkaErrorCode.POLICY_VIOLATION,
        )

    async def create_partitions(self, totals: Mapping[str, int]) -> Outcome[None]:
        """Grow each topic to the given number of partitions.

        One that has as many already is refused (INVALID_PARTITIONS).
        """

        async def grow(piece: Sequence[tuple[str, int]]) -> Outcome[None]:
            futures = (await self._connected()).create_partitions(
                [NewPartitions(name, total) for name, total in piece],
                operation_timeout=self._timeout,
                request_timeout=self._timeout,
            )
            return await self._collect(futures, "add partitions to", lambda name: f"topic {name}", str)

        return await merge_outcomes(ask_in_pieces(totals.items(), CHANGED_AT_ONCE, grow))

    def config_pieces(self, topics: Iterable[str]) -> AsyncIterator[Outcome[tuple[TopicConfig, ...]]]:
        """Yield the effective configs of each topic, `CHANGED_AT_ONCE` topics at a time, in the order given.

        All at once would be 350,000 values for 10,000 topics. A topic that does not exist is absent from the outcome.
        """
        ask = partial(self._again_if_closed, self._describe_configs)
        return ask_in_pieces(dict.fromkeys(topics), CHANGED_AT_ONCE, ask)

    async def _describe_configs(self, topics: Sequence[str]) -> Outcome[tuple[TopicConfig, ...]]:
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
        futures = (await self._connected()).describe_configs(resources, request_timeout=self._timeout)
        outcome = await self._collect(
            futures, "describe configs of", lambda r: f"topic {r.name}", lambda r: str(r.name)
        )
        done = {
            name: tuple(
                _topic_config(e, ConfigSource(int(e.source)))
                for e in sorted(entries.values(), key=lambda e: str(e.name))
            )
            for name, entries in outcome.done.items()
        }
        unknown_topic = KafkaError.UNKNOWN_TOPIC_OR_PART
        failed = {name: trouble for name, trouble in outcome.failed.items() if trouble.code != unknown_topic}
        return Outcome(done, failed, outcome.denied)

    async def alter_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        """Set the named configs of each topic; None removes one.

        All others stay (IncrementalAlterConfigs, KIP-339). Brokers that do not know that request get AlterConfigs
        with all configs that a topic is to have, as they were read a moment before. A change that another client
        makes in between is lost. If brokers do not say which configs are set on a topic, the topic is not changed,
        and `failed` has RequestUnsupported.
        """
        outcome = await self._alter_some(changes)
        unknown = {name for name, trouble in outcome.failed.items() if isinstance(trouble, RequestUnsupported)}
        if not unknown:
            return outcome
        refused = set(self.refused_requests)
        rewritten = await self._alter_all({name: changes[name] for name in unknown})
        self.refused_requests |= refused  # AlterConfigs does not show whether the other request works
        failed = {name: trouble for name, trouble in outcome.failed.items() if name not in unknown}
        return Outcome(outcome.done | rewritten.done, failed | rewritten.failed, outcome.denied | rewritten.denied)

    async def _alter_all(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        read = await merge_outcomes(self.config_pieces(changes))
        resources, unclear = [], dict[str, RequestRefused]()
        for name, configs in read.done.items():
            if any(config.is_source_unknown for config in configs):
                reason = "the brokers do not say which configs are set on the topic"
                unclear[name] = RequestUnsupported(
                    self.alias, ALTERS_CONFIGS, f"topic {name}", KafkaErrorCode.UNSUPPORTED_VERSION, reason
                )
                continue
            values = {config.name: config.value for config in configs if config.is_topics} | dict(changes[name])
            values_set = {key: value for key, value in values.items() if value is not None}
            resources.append(ConfigResource(ConfigResource.Type.TOPIC, name, set_config=values_set))
        troubles: Outcome[None] = Outcome(failed={**read.failed, **unclear}, denied=read.denied)
        if resources:
            futures = (await self._connected()).alter_configs(resources, request_timeout=self._timeout)
            troubles.merge(
                await self._collect(futures, ALTERS_CONFIGS, lambda r: f"topic {r.name}", lambda r: str(r.name))
            )
        return troubles

    async def _alter_some(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        async def alter(piece: Sequence[tuple[str, Mapping[str, str | None]]]) -> Outcome[None]:
            resources = []
            for name, configs in piece:
                resource = ConfigResource(ConfigResource.Type.TOPIC, name)
                for key, value in configs.items():
                    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                    resource.add_incremental_config(ConfigEntry(key, value or "", incremental_operation=operation))
                resources.append(resource)
            futures = (await self._connected()).incremental_alter_configs(resources, request_timeout=self._timeout)
            return await self._collect(futures, ALTERS_CONFIGS, lambda r: f"topic {r.name}", lambda r: str(r.name))

        return await merge_outcomes(
            ask_in_pieces(changes.items(), CHANGED_AT_ONCE, partial(self._again_if_closed, alter))
        )


def _topic_config(entry: ConfigEntry, source: ConfigSource) -> TopicConfig:
    fixed = entry.is_read_only or entry.is_sensitive or entry.value is None
    return TopicConfig(
        entry.name,
        entry.value or "",
        is_default=source is ConfigSource.DEFAULT_CONFIG,
        is_topics=source is ConfigSource.DYNAMIC_TOPIC_CONFIG,
        copyable=not fixed and source is not ConfigSource.STATIC_BROKER_CONFIG,
        is_source_unknown=source is ConfigSource.UNKNOWN_CONFIG and not entry.is_default,
    )


NO_TOPIC_ID = "A" * 22


def _as_kafka_prints(topic_id: object) -> str:
    """Return a topic id as Kafka's tools print it, or "" if there is none.

    librdkafka writes base64 with + and /, Kafka's own tools with - and _.
    """
    text = "" if topic_id is None else str(topic_id).rstrip("=").replace("+", "-").replace("/", "_")
    return "" if text == NO_TOPIC_ID else text
