"""The configs that both clusters have, read fresh, as the plan wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError

from lockstep_runtime.kafka.admin import Admin
from lockstep_runtime.kafka.admin_types import ConfigSource, TopicConfig
from lockstep_runtime.kafka.outcome import Outcome
from lockstep_topic_sync.plan import Config

FROM_A_FILE = frozenset({ConfigSource.STATIC_BROKER})


@dataclass(frozen=True, slots=True)
class Configs:
    """Configs by topic, and why those of other topics could not be read."""

    by_topic: Mapping[str, tuple[Config, ...]]
    troubles: Mapping[str, str]


async def read_configs(admin: Admin, names: Iterable[str]) -> Configs:
    """Effective configs of `names`. One that may not be read is in `troubles`, one that does not exist nowhere."""
    by_topic: dict[str, tuple[Config, ...]] = {}
    troubles: dict[str, str] = {}
    async for piece in config_pieces(admin, names):
        by_topic.update(piece.by_topic)
        troubles.update(piece.troubles)
    return Configs(by_topic, troubles)


async def config_pieces(admin: Admin, names: Iterable[str]) -> AsyncIterator[Configs]:
    """As `read_configs`, some hundred topics at a time in the order given, for a caller that need not hold them all at
    once."""
    async for outcome in admin.config_pieces(dict.fromkeys(names)):
        yield _as_configs(outcome)


def _as_configs(outcome: Outcome[tuple[TopicConfig, ...]]) -> Configs:
    gone = {name for name, trouble in outcome.failed.items() if trouble.code == KafkaError.UNKNOWN_TOPIC_OR_PART}
    troubles = {name: str(trouble) for name, trouble in outcome.troubles().items() if name not in gone}
    return Configs({name: tuple(map(_as_config, entries)) for name, entries in outcome.done.items()}, troubles)


def _as_config(entry: TopicConfig) -> Config:
    return Config(
        entry.name,
        entry.value or "",
        is_default=entry.source == ConfigSource.DEFAULT,
        is_topics=entry.source == ConfigSource.TOPIC,
        copyable=not (entry.read_only or entry.sensitive or entry.source in FROM_A_FILE or entry.value is None),
    )
