"""Creation of topics with the configs and the replication factor that the cluster accepts.

A broker refuses a topic if it does not accept one of its configs: an unknown key, a bad value, or a config that the
operator's policy forbids. Then each config is tried by itself, and the refused ones are left out. So one key stops
neither the other configs nor the topic.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from confluent_kafka import KafkaError

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import NewTopic, Outcome
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_state.kafka.kafka_errors import KafkaErrorCode

Trouble = NotPermitted | RequestRefused
OneConfig = tuple[str, str | None]
TryOne = Callable[[Mapping[str, OneConfig]], Awaitable[Outcome[None]]]

OTHER_FACTORS = (3, -1, 2, 1)
"""Replication factors that are tried if the wanted one is refused.

Managed services demand three. -1 leaves it to the brokers (Kafka 2.4). Fewer replicas come last.
"""


@dataclass(frozen=True, slots=True)
class Creation:
    """The result of a creation of topics.

    Each topic is in one of `created`, `existed` and `failed`.
    """

    created: tuple[str, ...] = ()
    existed: tuple[str, ...] = ()
    failed: Mapping[str, Trouble] = field(default_factory=dict)
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Configs that were left out, each with the cluster's message, by created topic."""
    factors: Mapping[str, int] = field(default_factory=dict)
    """The replication factor of each created topic for which the cluster refused the wanted one."""


async def create_fitting_topics(
    admin: Admin, topics: Sequence[NewTopic], *, kept: Collection[str] = (), validate_only: bool = False
) -> Creation:
    """Create topics with the configs and the replication factors that the cluster accepts.

    Args:
        admin: The administration of the cluster.
        topics: The topics as they are wanted.
        kept: Configs without which a topic is of no use. If one is refused, the topic fails.
        validate_only: True to ask for the result only, and create nothing.

    Raises:
        ClusterUnreachable: No broker answered.
    """
    outcome = await admin.create_topics(topics, validate_only=validate_only)
    unfit = [topic for topic in topics if _is_unfit(outcome.failed.get(topic.name), topic.replication_factor)]
    troubles: dict[str, Trouble] = outcome.troubles()
    if not unfit:
        return _creation(outcome.done, troubles, {}, {})
    bare = await _find_factors(admin, await _without_waiting(admin, unfit, troubles), kept, troubles)
    fit = dict(bare)

    async def try_one(configs: Mapping[str, OneConfig]) -> Outcome[None]:
        tried = [_with_config(fit[name], config) for name, config in configs.items()]
        answer = await admin.create_topics(tried, validate_only=True)
        fit.update({topic.name: topic for topic in tried if topic.name in answer.done})
        return answer

    requested = {topic.name: topic for topic in topics}
    untried = {name: _others(requested[name].configs, topic.configs) for name, topic in bare.items()}
    refused, undecided = await find_refused_configs(untried, try_one)
    troubles |= undecided
    fit = {name: topic for name, topic in fit.items() if name not in undecided}
    again = await admin.create_topics(list(fit.values()), validate_only=validate_only)
    troubles = {name: trouble for name, trouble in troubles.items() if name not in fit} | again.troubles()
    return _creation(
        [topic.name for topic in topics if topic.name in outcome.done or topic.name in again.done],
        troubles,
        {name: keys for name, keys in refused.items() if keys and name in again.done},
        {
            name: topic.replication_factor
            for name, topic in fit.items()
            if name in again.done and topic.replication_factor != requested[name].replication_factor
        },
    )


class TriedConfigs(NamedTuple):
    """The result of trying configs one by one, by topic."""

    refused: dict[str, dict[str, str]]
    """The configs that the cluster does not accept, each with its message."""
    undecided: dict[str, Trouble]
    """Other errors of the cluster, which tell nothing about the config.

    The topic's remaining configs were not tried.
    """


async def find_refused_configs(configs: Mapping[str, Mapping[str, str | None]], try_one: TryOne) -> TriedConfigs:
    """Try each config of each topic by itself, and return those that are refused.

    One request is for the first config of every topic, the next one for the second, and so on. Errors such as an
    exceeded limit or a controller that moves do not count as a refused config.
    """
    refused: dict[str, dict[str, str]] = {name: {} for name in configs}
    undecided: dict[str, Trouble] = {}
    untried = {name: list(chosen.items())[::-1] for name, chosen in configs.items() if chosen}
    while untried:
        tried = {name: entries.pop() for name, entries in untried.items()}
        outcome = await try_one(tried)
        for name, trouble in outcome.troubles().items():
            if isinstance(trouble, RequestRefused) and Admin.may_be_refused_configs(trouble):
                refused[name][tried[name][0]] = trouble.message
            else:
                undecided[name] = trouble
        untried = {name: entries for name, entries in untried.items() if entries and name not in undecided}
    return TriedConfigs(refused, undecided)


def _is_unfit(trouble: Trouble | None, replication_factor: int) -> bool:
    """Return whether a topic may be created with other configs or with another replication factor."""
    if not isinstance(trouble, RequestRefused):
        return False
    if trouble.code == KafkaError._UNSUPPORTED_FEATURE:  # librdkafka's word for -1 on brokers before Kafka 2.4
        return replication_factor == -1
    return trouble.code == KafkaErrorCode.INVALID_REPLICATION_FACTOR or Admin.may_be_refused_configs(trouble)


async def _without_waiting(admin: Admin, unfit: Iterable[NewTopic], troubles: Mapping[str, Trouble]) -> list[NewTopic]:
    """Return the topics whose refusal does not end by waiting.

    A broker that restarts comes back. A topic that is created meanwhile would have fewer replicas for good.
    """
    live = await admin.live_broker_count()
    is_one_down = live < await admin.broker_count()

    def waits(topic: NewTopic) -> bool:
        trouble, factor = troubles[topic.name], topic.replication_factor
        is_factor = isinstance(trouble, RequestRefused) and trouble.code == KafkaErrorCode.INVALID_REPLICATION_FACTOR
        return is_factor and (factor > live or (factor == -1 and is_one_down))

    return [topic for topic in unfit if not waits(topic)]


async def _find_factors(
    admin: Admin, unfit: Sequence[NewTopic], kept: Collection[str], troubles: dict[str, Trouble]
) -> dict[str, NewTopic]:
    """Return each topic with only its `kept` configs and a replication factor that the cluster accepts, by name.

    If the cluster accepts none, `troubles` gets its error for the wanted factor.
    """
    accepted: dict[str, NewTopic] = {}
    undecided = [replace(topic, configs={k: v for k, v in topic.configs.items() if k in kept}) for topic in unfit]
    for attempt, factor in enumerate((None, *OTHER_FACTORS)):
        tried = [topic if factor is None else replace(topic, replication_factor=factor) for topic in undecided]
        outcome = await admin.create_topics(tried, validate_only=True)
        accepted |= {topic.name: topic for topic in tried if topic.name in outcome.done}
        answers = outcome.troubles()
        if attempt == 0:
            troubles |= answers
        undecided = [
            topic
            for topic, trial in zip(undecided, tried, strict=True)
            if _is_unfit(answers.get(topic.name), trial.replication_factor)
        ]
        if not undecided:
            break
    return accepted


def _with_config(topic: NewTopic, config: OneConfig) -> NewTopic:
    key, value = config
    return topic if value is None else replace(topic, configs={**topic.configs, key: value})


def _others(configs: Mapping[str, str], accepted: Mapping[str, str]) -> dict[str, str | None]:
    return {key: value for key, value in configs.items() if key not in accepted}


def _creation(
    done: Iterable[str],
    troubles: Mapping[str, Trouble],
    refused: Mapping[str, Mapping[str, str]],
    factors: Mapping[str, int],
) -> Creation:
    existed = tuple(name for name, trouble in troubles.items() if Admin.is_existing_topic(trouble))
    failed = {name: trouble for name, trouble in troubles.items() if name not in existed}
    return Creation(tuple(done), existed, failed, refused, factors)
