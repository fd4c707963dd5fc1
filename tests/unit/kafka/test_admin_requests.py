"""Many resources are asked about in pieces, and what each came to is one outcome."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ListConsumerGroupsResult

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.group_requests import COMMITS, DESCRIBES, FETCHES_OFFSETS
from lockstep_kafka.admin.request_pieces import IN_FLIGHT, ask_in_pieces, merge_outcomes
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import (
    ClusterError,
    ClusterUnreachable,
    NotPermitted,
    RequestRefused,
    RequestUnsupported,
)
from lockstep_state.acl_binding import AclBinding
from lockstep_state.kafka.kafka_requests import KafkaRequest


async def asked_of(numbers: Sequence[int], size: int) -> tuple[list[list[int]], int]:
    """The pieces in the order of their answers, and how many were under way at most."""
    under_way: set[int] = set()
    most = 0

    async def ask(piece: Sequence[int]) -> list[int]:
        nonlocal most
        under_way.add(piece[0])
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.discard(piece[0])
        return list(piece)

    return [piece async for piece in ask_in_pieces(numbers, size, ask)], most


@pytest.mark.parametrize(("count", "pieces"), [(0, []), (1, [[0]]), (3, [[0, 1, 2]]), (7, [[0, 1, 2], [3, 4, 5], [6]])])
def test_everything_is_asked_once_and_in_order(count: int, pieces: list[list[int]]) -> None:
    answers, most = asyncio.run(asked_of(range(count), 3))
    assert answers == pieces
    assert most <= IN_FLIGHT


def test_outcomes_of_pieces_become_one() -> None:
    denied = NotPermitted("A", "to describe", "topic 2")

    async def ask(piece: Sequence[int]) -> Outcome[int]:
        return Outcome({str(n): n for n in piece if n != 2}, {}, {str(n): denied for n in piece if n == 2})

    outcome = asyncio.run(merge_outcomes(ask_in_pieces(range(5), 2, ask)))
    assert outcome.done == {"0": 0, "1": 1, "3": 3, "4": 4}
    assert outcome.denied == {"2": denied}


def test_a_cluster_that_is_away_ends_all_pieces() -> None:
    ended = []

    async def ask(piece: Sequence[int]) -> Outcome[int]:
        if piece[0] == 0:
            raise ClusterUnreachable("A", "a:9092", "refused")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(piece[0])
        return Outcome()

    with pytest.raises(ClusterUnreachable):
        asyncio.run(asyncio.wait_for(merge_outcomes(ask_in_pieces(range(9), 1, ask)), 5.0))
    assert ended == [1]


class Silent(Admin):
    """Asks a cluster that owes an answer. `answers`: to the question whether anybody is there."""

    def __init__(self, *, answers: bool) -> None:
        super().__init__("A", {"bootstrap.servers": "a:9092"}, timedelta(seconds=0.02))
        self.answers, self.owed = answers, Future[str]()
        self.owed.set_running_or_notify_cancel()
        self.asked: list[str | None] = []
        """The topic of each listing; None: all of them."""
        self.listed = {"large": 3, "small": 1}

    async def _connected(self) -> Any:
        return self

    def poll(self, _: float) -> None:
        """Be a client without complaints."""

    def list_topics(self, *, topic: str | None, timeout: float) -> Any:
        self.asked.append(topic)
        if not self.answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        if len(self.asked) == 3:
            self.owed.set_result("late")
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(error=None if name in self.listed else "gone", partitions=[0] * count)
                for name, count in (self.listed if topic is None else {topic: self.listed.get(topic, 0)}).items()
            }
        )


@pytest.mark.parametrize("whole", [True, False])
async def test_request_without_an_answer_ends_if_no_broker_answers(*, whole: bool) -> None:
    """librdkafka would wait for a minute, and nobody would know that the cluster is gone."""
    admin = Silent(answers=False)
    asked = (
        admin._answer(admin.owed, "describe", "x") if whole else admin._collect({"x": admin.owed}, "describe", str, str)
    )
    with pytest.raises(ClusterUnreachable):
        await asyncio.wait_for(asked, 5)
    assert len(admin.asked) == 1
    admin.owed.set_result("too late")  # librdkafka settles it all the same


async def test_request_that_lasts_is_waited_for_while_a_broker_answers() -> None:
    admin = Silent(answers=True)
    assert await asyncio.wait_for(admin._answer(admin.owed, "describe", "x"), 5) == "late"
    assert admin.asked == [None, "small", "small"]


async def test_all_topics_are_listed_only_if_no_listed_one_is_left() -> None:
    """A topic that the cluster has not named may be one that we have no right to."""
    admin = Silent(answers=True)
    for _ in range(2):
        await admin._brokers_metadata(1.0)
    del admin.listed["small"]
    for _ in range(3):
        await admin._brokers_metadata(1.0)
    admin.listed.clear()
    for _ in range(2):
        await admin._brokers_metadata(1.0)
    assert admin.asked == [None, "small", "small", None, "large", "large", None]


class Cut(Silent):
    """Loses the connection at each request of a kind, and answers others."""

    async def describe(self, *, begun_first: bool = False) -> ClusterError:
        """Return the trouble of a request. `begun_first`: together with another one, which fails before it does."""
        futures = [Future[str](), Future[str]()] if begun_first else [Future[str]()]
        asked = [asyncio.ensure_future(self._answer(future, "describe configs of", "topic x")) for future in futures]
        for future in futures:
            await asyncio.sleep(0)
            future.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
        *_, trouble = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(trouble, ClusterError)
        return trouble


async def test_request_at_which_connections_close_twice_is_not_known() -> None:
    admin = Cut(answers=True)
    assert isinstance(await admin.describe(), ClusterUnreachable)
    assert isinstance(await admin.describe(), RequestUnsupported)
    assert admin.refused_requests == {KafkaRequest.DESCRIBE_CONFIGS}


async def test_requests_that_one_close_ends_say_nothing_of_what_is_known() -> None:
    """A broker that stops ends all that it owes."""
    admin = Cut(answers=True)
    assert isinstance(await admin.describe(begun_first=True), ClusterUnreachable)
    assert not admin.refused_requests


async def test_request_that_is_answered_later_is_known() -> None:
    """Brokers of a cluster stopped one after the other."""
    admin = Cut(answers=True)
    for _ in range(2):
        await admin.describe()
    answer = Future[str]()
    answer.set_result("configs")
    assert await admin._answer(answer, "describe configs of", "topic x") == "configs"
    assert not admin.refused_requests


async def test_request_that_brokers_do_not_announce_is_not_remembered() -> None:
    """They may be upgraded, and say then that they know it."""
    admin = Silent(answers=True)
    answer = Future[str]()
    answer.set_exception(KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE)))
    with pytest.raises(RequestUnsupported):
        await admin._answer(answer, "alter configs of", "topic x")
    assert not admin.refused_requests


@pytest.mark.parametrize(
    ("operation", "code", "is_unknown"),
    [
        ("describe ACLs of", KafkaError.POLICY_VIOLATION, True),
        ("describe configs of", KafkaError.POLICY_VIOLATION, True),
        ("describe configs of", KafkaError.UNSUPPORTED_VERSION, True),
        ("alter configs of", KafkaError.POLICY_VIOLATION, False),
        ("create", KafkaError.POLICY_VIOLATION, False),
    ],
)
async def test_policy_against_a_request_that_reads_refuses_it_to_all(
    operation: str, code: int, *, is_unknown: bool
) -> None:
    admin = Silent(answers=True)
    answer = Future[str]()
    answer.set_exception(KafkaException(KafkaError(code)))
    with pytest.raises(RequestRefused) as caught:
        await admin._answer(answer, operation, "topic x")
    assert isinstance(caught.value, RequestUnsupported) is is_unknown
    assert bool(admin.refused_requests) is is_unknown


class Counting(Admin):
    """Knows how many groups it asked about at once, at most."""

    under_way = most = 0

    async def _request_description(self, name: str, *, operations: bool = False) -> Outcome[Any]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super()._request_description(name, operations=operations)
        finally:
            self.under_way -= 1


def test_requests_about_groups_have_the_bound_that_is_set() -> None:
    """At an address where nobody answers: all are asked all the same."""

    async def ask() -> int:
        admin = Counting("A", {"bootstrap.servers": "127.0.0.1:1"}, timedelta(seconds=0.2))
        admin.bound_groups(2)
        answers = await asyncio.gather(*(admin.describe_groups([group]) for group in "abc"), return_exceptions=True)
        assert all(isinstance(answer, ClusterUnreachable) for answer in answers)
        return admin.most

    assert asyncio.run(ask()) == 2


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ("operation", "ANY"),
        ("operation", "UNKNOWN"),
        ("pattern", "MATCH"),
        ("pattern", "ANY"),
        ("permission", "ANY"),
        ("resource", "ANY"),
        ("name", ""),
        ("principal", ""),
        ("host", ""),
    ],
)
def test_acl_deletion_refuses_anything_but_a_single_binding(field: str, word: str) -> None:
    words = {"resource": "TOPIC", "name": "t", "pattern": "LITERAL", "operation": "READ"}
    words |= {"permission": "ALLOW", "principal": "User:ann", "host": "*", field: word}
    binding = AclBinding(**words)
    admin = Admin("A", {"bootstrap.servers": "127.0.0.1:1"}, timedelta(seconds=1))
    with pytest.raises(ValueError, match="not one binding"):
        asyncio.run(admin.delete_acls([binding]))


class Loading(Admin):
    """Of a cluster whose only coordinator still loads its groups."""

    async def _answer(self, future: object, operation: str, resource: str) -> ListConsumerGroupsResult:
        error: Any = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        return ListConsumerGroupsResult(errors=[error])


def test_groups_that_no_coordinator_can_list_yet_are_a_trouble_to_retry() -> None:
    """The library gives KafkaErrors here, although it documents exceptions around them."""
    admin = Loading("A", {"bootstrap.servers": "127.0.0.1:1"}, timedelta(seconds=0.2))
    with pytest.raises(ClusterError, match="groups"):
        asyncio.run(admin.list_groups())


class Coordinated(Admin):
    """Of a cluster whose coordinator answers with these codes, one after the other, and then "done"."""

    def __init__(self, codes: Sequence[int], timeout_s: float) -> None:
        super().__init__("A", {"bootstrap.servers": "127.0.0.1:1"}, timedelta(seconds=timeout_s))
        self.codes = list(codes)
        self.clients: list[object] = []

    async def ask(self, operation: str = DESCRIBES) -> object:
        return await self._until_answered("g", operation, lambda: self._ask_coordinator("g", self.answer))

    def answer(self, client: object) -> dict[str, "Future[Any]"]:
        self.clients.append(client)
        future = Future[Any]()
        if not self.codes:
            future.set_result("done")
        elif (code := self.codes.pop(0)) != NO_ANSWER:
            future.set_exception(KafkaException(KafkaError(code)))
        return {"g": future}


NO_ANSWER = 0
NO_COORDINATOR = [KafkaError._TIMED_OUT, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR]


def test_group_is_asked_about_again_while_it_has_no_coordinator() -> None:
    admin = Coordinated(NO_COORDINATOR, 60)
    assert asyncio.run(admin.ask()) == "done"
    assert [client is admin._coordinating for client in admin.clients] == [True] * 4


def test_group_is_asked_about_with_another_client_after_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_kafka.admin.group_requests.COORDINATOR_ANSWERS_S", 0.05)
    admin = Coordinated([NO_ANSWER], 60)
    assert asyncio.run(admin.ask()) == "done"
    assert [client is admin._coordinating for client in admin.clients] == [False, True]


def test_group_without_a_coordinator_is_waited_for_once() -> None:
    """Rounds over all groups wait for each of them."""
    admin = Coordinated([KafkaError.NOT_COORDINATOR] * 100, 0.5)
    for _ in range(3):
        with pytest.raises(KafkaException):
            asyncio.run(admin.ask())
    asked = 100 - len(admin.codes)
    assert 4 <= asked < 10, "several times at first, and once from then on"
    admin.codes = []
    assert asyncio.run(admin.ask()) == "done"
    admin.codes = NO_COORDINATOR[1:]
    assert asyncio.run(admin.ask()) == "done", "it is waited for again after an answer"


def test_answer_to_another_request_does_not_make_a_group_wait_again() -> None:
    """A target may give a group's offsets, and take no commit for want of a coordinator."""
    admin = Coordinated([KafkaError.NOT_COORDINATOR] * 100, 0.5)
    with pytest.raises(KafkaException):
        asyncio.run(admin.ask(COMMITS))
    admin.codes = []
    assert asyncio.run(admin.ask(FETCHES_OFFSETS)) == "done"
    admin.codes = [KafkaError.NOT_COORDINATOR] * 100
    with pytest.raises(KafkaException):
        asyncio.run(admin.ask(COMMITS))
    assert len(admin.codes) == 99


@pytest.mark.parametrize("code", [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._TRANSPORT])
def test_other_errors_about_a_group_are_raised_at_once(code: int) -> None:
    admin = Coordinated([code], 60)
    with pytest.raises(KafkaException):
        asyncio.run(admin.ask())
    assert len(admin.clients) == 1


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, NO_ANSWER])
def test_group_without_a_coordinator_is_given_up_within_the_timeout(code: int) -> None:
    admin = Coordinated([code] * 100, 0.5)
    with pytest.raises(KafkaException):
        asyncio.run(asyncio.wait_for(admin.ask(), 5))
    at_most = 1 if code == NO_ANSWER else 3  # after 0.1 and 0.3 s; the next would be too late
    assert 1 <= len(admin.clients) <= at_most


def test_answer_about_a_group_that_nobody_waits_for_any_more_is_dropped() -> None:
    """The task that waits is cancelled as its connector is paused. The answer, an error, comes afterwards."""
    reported: list[dict[str, Any]] = []

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        admin = Coordinated([NO_ANSWER], 60)
        answers: list[Future[Any]] = []

        def answer(client: object) -> dict[str, "Future[Any]"]:
            answers.append(Future())
            return {"g": answers[-1]}

        asking = asyncio.ensure_future(admin._ask_coordinator("g", answer))
        while not answers:
            await asyncio.sleep(0.01)
        await cancelled([asking])
        answers.pop().set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        await asyncio.sleep(0)
        del asking
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(ask())
    assert reported == []


async def test_blocked_calls_to_one_cluster_hold_up_no_other() -> None:
    gone, alive = (Admin(name, {"bootstrap.servers": "x:1"}) for name in "AB")
    ends = threading.Event()
    waiting = [asyncio.create_task(gone._blocking("wait for", "an answer", ends.wait)) for _ in range(100)]
    try:
        async with asyncio.timeout(20):
            assert await alive._blocking("ask", "it", lambda: "answered") == "answered"
    finally:
        ends.set()
        await asyncio.gather(*waiting)
