"""Which coordinators are remembered, and what a connection means that one of them closes."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from lockstep_kafka.groups.group_coordinators import KEPT_S, Address, GroupCoordinators
from lockstep_kafka.wire.connection_errors import ConnectionClosedError

FOUND: Address = ("broker", 9092)


class Remembering(GroupCoordinators):
    """Finds every group at one broker, which knows of no offsets."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__({"bootstrap.servers": "bootstrap:9092"}, "client", 1.0, clock=lambda: self.now)
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


class Closing(Remembering):
    """Closes the connection at as many requests as it is told, or another group's request does."""

    def __init__(self, closes: int, *, by_broker: bool = True) -> None:
        super().__init__()
        self.closes, self.by_broker = closes, by_broker

    async def _connection(self, address: Address) -> Any:
        async def send(_: object) -> object:
            self.now += 1
            if not self.closes:
                return SimpleNamespace(error_code=self.code, topics=[])
            self.closes -= 1
            raise ConnectionClosedError("closed") from (ConnectionResetError() if self.by_broker else None)

        return SimpleNamespace(send=send, version=lambda _: 7)

    async def codes(self, count: int) -> list[int]:
        """Return the code of each of so many fetches; 0: it was answered."""
        codes = []
        for number in range(count):
            self.now += 1
            try:
                await self.fetch_offsets(f"group-{number % 2}")
            except KafkaException as exc:
                codes.append(exc.args[0].code())
            else:
                codes.append(0)
        return codes


@pytest.mark.parametrize(
    ("coordinator", "codes"),
    [
        (Closing(3), [KafkaError._TIMED_OUT, KafkaError.UNSUPPORTED_VERSION, KafkaError.UNSUPPORTED_VERSION]),
        (Closing(1), [KafkaError._TIMED_OUT, 0, 0]),
        (Closing(3, by_broker=False), [KafkaError._TIMED_OUT] * 3),
    ],
    ids=["each time", "once", "for another group"],
)
async def test_request_at_which_brokers_close_twice_is_not_known(coordinator: Closing, codes: list[int]) -> None:
    assert await coordinator.codes(3) == codes


async def test_close_before_an_answer_does_not_count_later() -> None:
    coordinator = Closing(1)
    assert await coordinator.codes(2) == [KafkaError._TIMED_OUT, 0]
    coordinator.closes = 1
    assert await coordinator.codes(2) == [KafkaError._TIMED_OUT, 0]


class ClosingAtFind(GroupCoordinators):
    """Closes the connection at FindCoordinator."""

    async def _connection(self, address: Address) -> Any:
        async def send(_: object) -> object:
            raise ConnectionClosedError("closed") from ConnectionResetError()

        return SimpleNamespace(send=send, version=lambda _: 3)


async def test_brokers_that_all_close_at_find_coordinator_count_as_down() -> None:
    coordinators = ClosingAtFind({"bootstrap.servers": "one:9092,two:9092"}, "client", 1.0)
    for _ in range(3):
        with pytest.raises(KafkaException) as caught:
            await coordinators.fetch_offsets("orders")
        assert caught.value.args[0].code() == KafkaError._ALL_BROKERS_DOWN
