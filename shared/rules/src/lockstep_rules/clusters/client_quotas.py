"""The client quota that counts for a client, by Kafka's order of precedence. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEFAULT = ""

PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """The quotas of an entity.

    `user` and `client_id` are None if the entity does not name one, and "" for its default.
    """

    user: str | None
    client_id: str | None
    values: Mapping[str, float]

    @property
    def entity(self) -> str:
        """Return the entity of the quota as a text for people."""
        parts = []
        for kind, name in (("user", self.user), ("client id", self.client_id)):
            if name is not None:
                parts.append(f"the default {kind}" if name == DEFAULT else f"{kind} {name}")
        return " with ".join(parts)


def effective_quota(
    quotas: Iterable[ClientQuota], user: str, client_id: str, key: str
) -> tuple[ClientQuota, float] | None:
    """Return the first quota, in Kafka's order, that has a value for the key, and that value.

    None means that there is no limit.
    """
    by_entity = {(quota.user, quota.client_id): quota for quota in quotas if key in quota.values}
    for entity in (
        (user, client_id),
        (user, DEFAULT),
        (user, None),
        (DEFAULT, client_id),
        (DEFAULT, DEFAULT),
        (DEFAULT, None),
        (None, client_id),
        (None, DEFAULT),
    ):
        if entity in by_entity:
            return by_entity[entity], by_entity[entity].values[key]
    return None
