"""A test whether a cluster gives producer ids.

Without a producer id an idempotent producer of librdkafka appends nothing. librdkafka reports an error if brokers do
not announce InitProducerId. If they announce it and close the connection at it, or refuse it in each version, it
repeats the request for ever and reports nothing.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError

from lockstep_config.credentials.permissions import Access
from lockstep_kafka.wire.cluster import KafkaProtocolError, connect_cluster
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.optional_requests import new_producer
from lockstep_kafka.wire.timeouts import Timeouts
from lockstep_state.kafka.kafka_errors import KafkaErrorCode

WITHOUT_IDS = frozenset({KafkaError._UNSUPPORTED_FEATURE, int(KafkaErrorCode.UNSUPPORTED_VERSION)})
"""Error codes of an idempotent producer that gets no producer id."""

NO_IDS = "the cluster gives no producer ids (InitProducerId)"

ASKED_AFTER_S = 2.0
"""Seconds that records wait for a first acknowledgement before the cluster is asked."""

ANSWERED_WITHIN = Timeouts(opening_s=5.0, short_request_s=5.0)


async def refuses_producer_ids(login: Mapping[str, str], client_id: str) -> bool:
    """Return whether a cluster that answers gives no producer ids.

    Args:
        login: Java properties of a client.
        client_id: The client id for the brokers.

    Returns:
        True if it gives none. False also if brokers refuse for another reason, or if none lets us in now.
    """
    try:
        cluster = await asyncio.to_thread(connect_cluster, "", login, client_id, ANSWERED_WITHIN)
    except BrokerUnreachable:
        return False
    try:
        await cluster.refresh([])
        return await new_producer(cluster) is None
    except (BrokerUnreachable, KafkaProtocolError):
        return False
    finally:
        await cluster.close()


class ProducerIdCheck:
    """A check, for one producer, whether its cluster gives producer ids."""

    def __init__(self, access: Access, client_id: str) -> None:
        self._login, self._client_id = access.login, client_id
        self._waits_since: float | None = None
        self._asking: Future[None] | None = None

    def ask_if_due(self, loop: asyncio.AbstractEventLoop, on_refused: Callable[[], None]) -> None:
        """Ask the cluster in `loop`, from another thread, if records have waited for `ASKED_AFTER_S`.

        If the cluster gives no producer ids, `on_refused` is called in the loop. In a closed loop nothing is asked.
        """
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        is_asking = self._asking is not None and not self._asking.done()
        if not self._login or is_asking or now - self._waits_since < ASKED_AFTER_S or loop.is_closed():
            return
        self._waits_since = now
        self._asking = asyncio.run_coroutine_threadsafe(self._ask(on_refused), loop)

    async def _ask(self, on_refused: Callable[[], None]) -> None:
        if await refuses_producer_ids(self._login, self._client_id):
            on_refused()

    def close(self) -> None:
        """Cancel the request."""
        if self._asking is not None:
            self._asking.cancel()
