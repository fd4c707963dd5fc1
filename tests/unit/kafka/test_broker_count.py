"""How many brokers a cluster has, also while some are down."""

from types import SimpleNamespace
from typing import Any

import pytest

from lockstep_kafka.admin.admin import Admin


@pytest.mark.parametrize(
    ("up", "replicas", "count"),
    [((1,), {}, 1), ((1, 2, 3), {"t": [(1, 2)]}, 3), ((1,), {"t": [(1, 2), (2, 3)], "u": [(1,)]}, 3)],
)
async def test_broker_that_is_down_counts_if_it_has_a_replica(
    monkeypatch: pytest.MonkeyPatch, up: tuple[int, ...], replicas: dict[str, list[tuple[int, ...]]], count: int
) -> None:
    admin = object.__new__(Admin)
    topics = {
        name: SimpleNamespace(partitions={n: SimpleNamespace(replicas=list(some)) for n, some in enumerate(parts)})
        for name, parts in replicas.items()
    }

    async def metadata(_within_s: float) -> Any:
        return SimpleNamespace(brokers=dict.fromkeys(up), topics=topics)

    monkeypatch.setattr(admin, "_metadata", metadata)
    monkeypatch.setattr(Admin, "_quick", 1.0, raising=False)
    assert await admin.broker_count() == count
