"""Which coordinators are remembered."""

from types import SimpleNamespace
from typing import Any

from lockstep_kafka.groups.group_coordinators import KEPT_S, Address, GroupCoordinators

FOUND: Address = ("broker", 9092)


class Remembering(GroupCoordinators):
    """Finds every group at one broker, which knows of no offsets."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__({}, "client", 1.0, clock=lambda: self.now)
        self.finds: list[str] = []
        self.code = 0

    async def _find(self, group: str) -> Address:
        self.finds.append(group)
        return FOUND

    async def _connection(self, address: Address) -> Any:
        async def send(_: object) -> object:
            return SimpleNamespace(error_code=self.code, topics=[])

        return SimpleNamespace(send=send, version=lambda _: 7)

    @property
    def remembered(self) -> set[str]:
        return self._addresses.keys() | self._former.keys()


async def test_coordinator_of_a_group_asked_again_is_remembered() -> None:
    asked = Remembering()
    for _ in range(9):
        await asked.fetch_offsets("orders")
        asked.now += KEPT_S * 0.7
    assert asked.finds == ["orders"]


async def test_coordinator_of_a_group_not_asked_for_long_is_forgotten() -> None:
    asked = Remembering()
    for number in range(100):
        await asked.fetch_offsets(f"started-{number}")
        await asked.fetch_offsets("orders")
        asked.now += KEPT_S
    assert asked.finds.count("orders") == 1
    assert asked.remembered == {"orders", "started-98", "started-99"}


async def test_coordinator_that_failed_is_not_remembered() -> None:
    asked = Remembering()
    await asked.fetch_offsets("orders")
    asked.now += KEPT_S
    await asked.fetch_offsets("bills")
    assert asked.remembered == {"orders", "bills"}
    asked._forget("orders")
    assert asked.remembered == {"bills"}
