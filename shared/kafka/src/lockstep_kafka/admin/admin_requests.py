"""The common parts of all admin requests: librdkafka's AdminClient, its futures, and its errors as our exceptions."""

import asyncio
import contextvars
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from inspect import isawaitable
from math import inf
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from lockstep_config.credentials.permissions import NO_ACCESS, Access
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_kafka.common.auth_errors import (
    NOT_A_BROKER,
    NOT_VERIFIED,
    explain_unresolved_name,
    login_name,
    refused_login,
)
from lockstep_kafka.common.closed_requests import ClosedRequests
from lockstep_kafka.common.error_verdicts import error_verdict, missing_operation, operation_words
from lockstep_kafka.common.errors import (
    AdvertisedAddressUnresolved,
    ClusterError,
    ClusterUnreachable,
    NotPermitted,
    RequestRefused,
    RequestUnsupported,
)
from lockstep_kafka.common.tracing import step
from lockstep_kafka.librdkafka.client_factory import certificate_error, create_client
from lockstep_kafka.librdkafka.client_reset import ClientReset
from lockstep_kafka.wire.error_codes import NOT_CARRIED_OUT
from lockstep_state.kafka.kafka_errors import ErrorMeaning
from lockstep_state.kafka.kafka_requests import KafkaRequest
from lockstep_state.kafka.librdkafka_errors import error_text

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V")

QUICK = 10.0
"""Longest duration of a listing, in seconds.

A listing is what notices that a cluster is away. The usual timeout of a minute would be late.
"""

RECONNECTS_WITHIN_S = 2.0
"""Longest time for which librdkafka waits before it connects to a broker again. It doubles with each lost connection.
"""

ASKING = {
    "allow.auto.create.topics": False,
    # librdkafka would write each reconnect to stderr. error_cb gets the same errors, and we log them once.
    "log_level": 0,
    # By default librdkafka forgets its brokers once it has lost every connection, and begins with the bootstrap
    # servers again. But it still waits for a group's coordinator among the forgotten brokers, so requests about
    # groups would have no answer any more.
    "metadata.recovery.strategy": "none",
    # Without that strategy, a request that waits for a broker asks for a connection at each change of the broker's
    # state, and connects at once. While the cluster is away, that takes a whole core (docs/decisions/0040).
    "enable.sparse.connections": False,
    "reconnect.backoff.max.ms": int(RECONNECTS_WITHIN_S * 1e3),
}


REACH = ("reach", "the cluster")
"""Operation and resource of a metadata request."""


REQUESTS = {
    "add partitions to": KafkaRequest.CREATE_PARTITIONS,
    "alter configs of": KafkaRequest.INCREMENTAL_ALTER_CONFIGS,
    "describe configs of": KafkaRequest.DESCRIBE_CONFIGS,
    "describe ACLs of": KafkaRequest.DESCRIBE_ACLS,
}
"""Requests that have a replacement if a cluster does not know them, by the name of the operation."""

UNANNOUNCED = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError._NOT_IMPLEMENTED})
"""Codes of librdkafka, which knows the request versions that the brokers announced.

Brokers announce these requests again after an upgrade, so nothing needs to be remembered.
"""

READS = frozenset({"describe configs of", "describe ACLs of"})
"""Operations that change nothing. A policy that refuses one of them refuses it to all clients."""

UNSUPPORTED = UNANNOUNCED | {KafkaError.UNSUPPORTED_VERSION}
"""Codes of an unsupported request, from librdkafka or from a broker."""

ANSWERS_AGAIN_S = RECONNECTS_WITHIN_S + 1.0
"""Seconds within which brokers that closed a connection at one request must answer another one to count as present.

After several closed connections librdkafka opens no other one for `RECONNECTS_WITHIN_S`.
"""


async def _close_client(former: list[AdminClient | None], after: float = 0.0) -> None:
    """Close a client that has no other users, after so many seconds.

    Closing waits for the client's threads.
    """
    await asyncio.sleep(after)
    await asyncio.to_thread(former.clear)


LEAST_S = 0.05
"""Seconds that a request gets if it is made when the time is over."""

BLOCKED_AT_MOST = 8
"""Number of blocking calls of one client that may wait for its cluster at once."""


class AdminRequests:
    """An admin connection to one cluster.

    It is safe for concurrent use within one event loop.

    Args:
        alias: The cluster's alias.
        conf: librdkafka's settings.
        timeout: The limit of every request.
        access: The rights that we need on the cluster. Errors name them.
        properties: The Java properties from which `conf` comes, for requests that librdkafka cannot send. Without them,
            these requests go to the bootstrap servers without TLS and login.
        ends_at: The time of `time.monotonic` that no request, and no thread that waits for one, outlasts.
        refused_s: The seconds for which all bootstrap servers have to refuse connections, so that the first request
            ends. By default a request waits for them as long as it may: a broker that restarts comes back.
    """

    def __init__(
        self,
        alias: str,
        conf: Mapping[str, Any],
        timeout: timedelta = timedelta(seconds=60),
        access: Access = NO_ACCESS,
        properties: Mapping[str, str] | None = None,
        ends_at: float = inf,
        refused_s: float = inf,
    ) -> None:
        self.alias = alias
        self._refused_s = refused_s
        self.access = access
        self._request_s = timeout.total_seconds()
        self._ends_at = ends_at
        self._complaints: deque[str] = deque(maxlen=8)
        self._client: AdminClient | None = None
        self._making = asyncio.Lock()
        self.refused_requests: set[KafkaRequest] = set()
        """Requests that the cluster announces, but has shown not to know."""
        self._unanswered = ClientReset()
        self._closes = ClosedRequests()
        self._ending: set[asyncio.Task[None]] = set()
        self._named_topic: str | None = None
        """A topic that the cluster named in its last answer about topics: we may describe it."""
        self._threads = ThreadPoolExecutor(BLOCKED_AT_MOST, thread_name_prefix=f"admin {alias}")
        """Threads of this cluster alone. Calls to a cluster that is away do not hold up calls to another cluster."""
        self._use(conf, properties)

    def _use(self, conf: Mapping[str, Any], properties: Mapping[str, str] | None) -> None:
        self.bootstrap = str(conf.get("bootstrap.servers", ""))
        self.properties = {"bootstrap.servers": self.bootstrap} if properties is None else properties
        self._conf: dict[str, Any] = {**conf, **ASKING, "error_cb": self._complain}

    @property
    def _timeout(self) -> float:
        """Seconds that a request may take now."""
        return self._capped(self._request_s)

    @property
    def _quick(self) -> float:
        """Seconds that a listing may take now."""
        return self._capped(min(self._request_s, QUICK))

    def _capped(self, seconds: float) -> float:
        """Return `seconds` or the time left until `ends_at`, whichever is less, but never 0.

        librdkafka takes a timeout of 0 as no limit.
        """
        return max(LEAST_S, min(seconds, self._ends_at - time.monotonic()))

    async def renew(self, conf: Mapping[str, Any], properties: Mapping[str, str]) -> None:
        """Use these settings for all further requests.

        No request may be in flight.
        """
        self._use(conf, properties)
        await self.close()

    async def close(self) -> None:
        """Close the connections.

        The next request opens new ones. No request may be in flight.
        """
        former, self._client = [self._client], None
        await _close_client(former)

    async def _connected(self) -> AdminClient:
        """Return the AdminClient, which is created at the first call.

        It connects as soon as it is created, and some services never ask one of their clusters.

        Raises:
            ClusterUnreachable: The certificates cannot be used, or there is no access token for the login.
        """
        async with self._making:
            if self._client is None:
                self._client = await self._make_client()
            return self._client

    async def _make_client(self) -> AdminClient:
        return await asyncio.to_thread(create_client, AdminClient, self._conf, self.alias)

    def _poll(self) -> None:
        """Let librdkafka call error_cb for what happened on its connections."""
        if self._client is not None:
            self._client.poll(0)

    def _give_up_client(self) -> None:
        """Drop the client, so that the next request creates another one.

        Requests that are in flight in the dropped client end by themselves, within their timeout.
        """
        log.debug(
            "connecting anew", extra={"text": f"administration of {self.alias}: no answer", "cluster": self.alias}
        )
        former, self._client = [self._client], None
        task = asyncio.ensure_future(_close_client(former, self._timeout))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _complain(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaints.append(error_text(error))

    async def _blocking(self, operation: str, resource: str, call: Callable[..., R], **kwargs: Any) -> R:
        began = time.monotonic()
        with self._step(operation, resource):
            try:
                called = partial(contextvars.copy_context().run, call, **kwargs)
                return await asyncio.get_running_loop().run_in_executor(self._threads, called)
            except KafkaException as exc:
                raise await self._trouble(exc.args[0], operation, resource, began) from exc

    async def _answer(self, future: Any, operation: str, resource: str) -> Any:
        began = time.monotonic()
        with self._step(operation, resource):
            try:
                result = await self._result(future)
            except KafkaException as exc:
                raise await self._trouble(exc.args[0], operation, resource, began) from exc
        self._note_supported(operation)
        return result

    async def _result(self, future: Future[Any]) -> Any:
        """Return the result of a request.

        One answer completes thousands of futures, so the event loop waits only for a future that is not done yet.

        Raises:
            KafkaException: The request failed.
            ClusterUnreachable: No broker answers, see `_wait_settled`.
        """
        if not future.done():
            await self._wait_settled(future)
        return future.result()

    async def _wait_settled(self, future: Future[Any]) -> None:
        """Wait until a request has an answer or an error.

        librdkafka waits for a broker as long as the request's timeout. So a cluster that is away would be noticed
        only after a minute.

        Raises:
            ClusterUnreachable: No answer came within the limit of a listing, and no broker answers a metadata request
                either.
        """
        answer = asyncio.ensure_future(future) if isawaitable(future) else asyncio.wrap_future(future)
        answer.add_done_callback(retrieve_error)  # the waiting task may be cancelled, and the answer comes later
        try:
            while not (await asyncio.wait([answer], timeout=self._quick))[0]:
                await self._brokers_metadata(self._quick)
        finally:
            answer.cancel()

    async def _metadata(self, within_s: float, topic: str | None = None) -> ClusterMetadata:
        """Return the cluster's metadata with one topic, or with all topics.

        Raises:
            ClusterUnreachable: No broker answered.
        """
        return await self._list_topics(*REACH, self._capped(within_s), topic)

    async def _brokers_metadata(self, within_s: float) -> ClusterMetadata:
        """Return the cluster's metadata with one topic, or with all topics while none is known.

        All topics of a large cluster are megabytes. librdkafka cannot ask for none. A topic that the cluster has named
        needs no right that we do not have, unless it is taken away: then the next request is for all topics again.

        Raises:
            ClusterUnreachable: No broker answered.
        """
        return await self._metadata(within_s, self._named_topic)

    async def _list_topics(self, operation: str, resource: str, within_s: float, topic: str | None) -> ClusterMetadata:
        list_topics = (await self._connected()).list_topics
        metadata = await self._blocking(operation, resource, list_topics, topic=topic, timeout=within_s)
        if self._named_topic not in (named := [name for name, t in metadata.topics.items() if t.error is None]):
            self._named_topic = min(named, key=lambda name: len(metadata.topics[name].partitions), default=None)
        return metadata

    @contextmanager
    def _step(self, operation: str, resource: str) -> Iterator[None]:
        """Run a request in a span, and count it as answered if it raises nothing."""
        with step(f"admin {operation}", cluster=self.alias, resource=resource):
            yield
        self._unanswered.answered()
        self._poll()  # otherwise librdkafka keeps the errors of an absent broker for ever
        self._complaints.clear()

    async def _collect(
        self, futures: Mapping[Any, Any], operation: str, resource: Callable[[Any], str], key: Callable[[Any], str]
    ) -> Outcome[Any]:
        outcome: Outcome[Any] = Outcome()
        if not futures:
            return outcome
        began = time.monotonic()
        with self._step(operation, f"{len(futures)} of them"):
            # The futures complete in order. To wait for each one would wake the loop as often.
            with suppress(KafkaException):
                await self._result(list(futures.values())[-1])
            for subject, future in futures.items():
                try:
                    outcome.done[key(subject)] = await self._result(future)
                except KafkaException as exc:
                    trouble = await self._trouble(exc.args[0], operation, resource(subject), began)
                    self._sort(outcome, key(subject), trouble)
        if outcome.done:
            self._note_supported(operation)
        return outcome

    def _note_supported(self, operation: str) -> None:
        """Note that the cluster knows a request.

        This ends an earlier refusal: the cluster was upgraded, or its brokers had only stopped one after the other.
        """
        if (request := REQUESTS.get(operation)) is not None:
            self.refused_requests.discard(request)

    @staticmethod
    def _sort(outcome: Outcome[Any], key: str, trouble: ClusterError) -> None:
        if isinstance(trouble, NotPermitted):
            outcome.denied[key] = trouble
        elif isinstance(trouble, RequestRefused):
            outcome.failed[key] = trouble
        else:
            raise trouble  # no broker answered, so no single resource has a result

    async def _trouble(self, error: KafkaError, operation: str, resource: str, began: float = inf) -> ClusterError:
        """Return the exception for an error of librdkafka.

        Args:
            error: The error of a broker or of librdkafka.
            operation: The name of the operation, such as "create".
            resource: The resource, such as "topic orders".
            began: When the request was made (`time.monotonic`). By default it counts as later than all others.
        """
        self._poll()
        if error.code() == KafkaError._UNSUPPORTED_FEATURE and (operation, resource) == REACH:
            return ClusterUnreachable(self.alias, self.bootstrap, NOT_A_BROKER)
        request_kind = REACH if operation == REACH[0] else (operation, resource.partition(" ")[0])
        is_refused = error.code() in UNSUPPORTED or (operation in READS and error.code() in NOT_CARRIED_OUT)
        if is_refused or await self._is_closed_at(error.code(), request_kind, began):
            request = REQUESTS.get(operation)
            if request is not None and error.code() not in UNANNOUNCED:
                self.refused_requests.add(request)
            return RequestUnsupported(self.alias, operation, resource, error.code(), error_text(error))
        verdict = error_verdict(error.code())
        if verdict is ErrorMeaning.UNREACHABLE:
            sentence = self._complaints[-1] if self._complaints else error_text(error)
            unnamed = next(
                filter(None, (explain_unresolved_name(complaint, self.bootstrap) for complaint in self._complaints)),
                None,
            )
            self._complaints.clear()
            if self._unanswered.is_due():
                self._give_up_client()
            if unnamed is not None:
                return AdvertisedAddressUnresolved(self.alias, self.bootstrap, unnamed)
            if NOT_VERIFIED in sentence:
                # librdkafka has one text for every certificate that it does not accept.
                certificate_text = await asyncio.to_thread(certificate_error, self._conf)
                sentence = certificate_text or sentence
            return ClusterUnreachable(self.alias, self.bootstrap, refused_login(sentence, login_name(self._conf)))
        if error.code() > 0:  # librdkafka's own codes tell nothing about the cluster
            self._unanswered.answered()
        if verdict is ErrorMeaning.DENIED:
            remedy = self.access.remedy(*missing_operation(error.code(), operation, resource))
            return NotPermitted(self.alias, operation_words(operation), resource, remedy)
        return RequestRefused(self.alias, operation, resource, error.code(), error_text(error))

    async def _again_if_closed(self, ask: Callable[[T], Awaitable[R]], subject: T) -> R:
        """Return the answer to a request, which is repeated once if brokers close the connection at it.

        It is repeated only if brokers answer another request. Two closes show that they do not know the request. The
        request must be idempotent.
        """
        closes = self._closes.count
        try:
            return await ask(subject)
        except ClusterUnreachable:
            if closes == self._closes.count:
                raise
            await self._brokers_metadata(ANSWERS_AGAIN_S)
            return await ask(subject)

    async def _is_closed_at(self, code: int, request_kind: tuple[str, str], began: float) -> bool:
        """Return whether brokers close every connection on which this request comes.

        Brokers that do not know a request may do so. They answer another request within `ANSWERS_AGAIN_S`. They also
        announced their request versions again between the two attempts.
        """
        if code != KafkaError._TRANSPORT or request_kind == REACH:
            return False
        closes = self._closes.count
        if not self._closes.closes_again(request_kind, began, time.monotonic()):
            return False
        if closes == self._closes.count:
            return True  # another subject of a request for which the brokers were tested already
        try:
            await self._brokers_metadata(ANSWERS_AGAIN_S)
        except ClusterUnreachable:
            return False
        return True
