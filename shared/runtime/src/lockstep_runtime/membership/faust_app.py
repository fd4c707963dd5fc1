"""Faust with our settings: an app that is one member of a group, follows one topic, and sleeps while nothing comes.

Faust and aiokafka wake up several times a second in a thread of each app, also when they have no work. The methods
that are replaced here are private to them. A contract test holds them.
"""

import logging
from collections.abc import Callable
from typing import Any

import faust
import faust.app  # Faust imports its parts when they are first used: do it before the loop runs, not in the midst of it
import faust.auth
from faust.transport.drivers import aiokafka as driver
from mode import Service
from mode.supervisors import CrashingSupervisor

from lockstep_config import FlowSettings
from lockstep_config.clients.librdkafka import max_idle_ms, uses_sasl
from lockstep_config.clients.sasl import read_login
from lockstep_config.flow import client_settings
from lockstep_kafka.session.sasl_session import WAITS_S
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.leadership import HEARTBEAT_EVERY, SESSION_TIMEOUT
from lockstep_state.names import service_group

NEVER_MS = 2**31 - 1

METADATA_EVERY_MS = 10_000
"""Milliseconds between two refreshes of the metadata.

If the commands topic has no leader in the metadata, the member that assigns the group assigns no partition. No
instance leads until the metadata is refreshed: for up to five minutes by default.
"""

ASK_EVERY_S = 3.0
"""Longest wait of Faust for records in its consumer's thread; by default a second.

Records end the wait. A newly assigned partition is read when the wait is over, so it is no longer.
"""

CHECK_INTERVAL_S = 3.0
"""Seconds between two checks of aiokafka's fetcher for work that it was not woken for; by default 0.2."""

COMMITS_EVERY_S = 15.0
"""Seconds between two commits of Faust. Nothing depends on them: a leader begins with the commands without an answer.
"""


def _library_logger(part: str) -> logging.Logger:
    """Return a logger of Faust for a subclass: mode would choose one of our module, which is not silent."""
    return logging.getLogger(f"faust.{part}")


class Thread(driver.AIOKafkaConsumerThread):
    """The thread of Faust's consumer."""

    logger = _library_logger("thread")

    async def on_start(self) -> None:
        """Start as Faust does, and give the app aiokafka's consumer, which has not joined its group yet."""
        await super().on_start()
        app: Any = self.app
        app.listen(self._consumer)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._consumer_timeout = CHECK_INTERVAL_S
        consumer._fetch_max_wait_ms = round(WAITS_S * 1000)  # Faust lets it for half as long
        return consumer

    @Service.task
    async def _thread_keepalive(self) -> None:
        """Do nothing. Faust wakes this thread's loop every second for queued calls, but queueing wakes it anyway."""
        return

    async def _keepalive2(self) -> None:
        """Do nothing, as `_thread_keepalive`."""
        return


class Consumer(driver.Consumer):
    """A consumer with such a thread."""

    logger = _library_logger("consumer")

    def _new_consumer_thread(self) -> Thread:
        return Thread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:
        return await super()._getmany(active_partitions, max(timeout, ASK_EVERY_S))


class Transport(driver.Transport):
    """A transport with such consumers."""

    Consumer = Consumer


class Unmeasured(faust.Monitor):
    """Faust's monitor without its averages of every second, which are not read here."""

    logger = _library_logger("sensors")

    @Service.task
    async def _sampler(self) -> None:
        return


class App(faust.App):
    """A Faust app that writes nothing to disk: without tables its data folder would stay empty.

    `listen` gets aiokafka's consumer before it joins its group, in the consumer's thread.
    """

    logger = _library_logger("app")
    listen: Callable[[Any], None]

    def _create_directories(self) -> None:
        return

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def follow(self, topic: Any, on_stream: Callable[[Any], Any]) -> None:
        """Give the stream of this topic's events to `on_stream`, as Faust's decorator `agent` does.

        The decorator also reads the caller's source and the path of every module, to search agents in them.
        """
        settings: Any = self.conf
        agent = settings.Agent(
            on_stream,
            app=self,
            channel=topic,
            concurrency=1,
            supervisor_strategy=CrashingSupervisor,
            on_error=self._on_agent_error,
        )
        self.agents[agent.name] = agent


def build_app(ctx: FlowContext, listen: Callable[[Any], None], instance: str | None) -> Any:
    """Build a Faust app that is one group member and follows one topic.

    Args:
        ctx: The flow and its settings.
        listen: As `App.listen`.
        instance: The group instance id, by which the member finds its former partitions; None joins as a new member.
    """
    settings = ctx.settings
    hosts = settings.target.bootstrap.split(",")
    app = App(
        service_group(ctx.service, ctx.flow, settings.group_id),
        broker=[f"kafka://{host}" for host in hosts],
        broker_credentials=_credentials(settings),
        broker_client_id=f"{settings.flow}|{ctx.service}",
        broker_session_timeout=SESSION_TIMEOUT,
        broker_rebalance_timeout=15.0,
        broker_heartbeat_interval=HEARTBEAT_EVERY,
        broker_request_timeout=20.0,
        broker_max_poll_interval=300.0,
        broker_commit_interval=COMMITS_EVERY_S,
        consumer_group_instance_id=instance,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_EVERY_MS,
        consumer_connections_max_idle_ms=max_idle_ms(settings.target.properties) or NEVER_MS,
        store="memory://",
        Monitor=Unmeasured,
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        agent_supervisor=CrashingSupervisor,
        autodiscover=False,
    )
    app.listen = listen
    return app


def _credentials(settings: FlowSettings) -> Any:
    properties = settings.target.properties
    context = client_settings.aiokafka_connection(properties).get("ssl_context")
    if uses_sasl(properties):  # over TLS if there is a context
        kind, arguments = read_login(properties).to_faust()
        return getattr(faust.auth, kind)(ssl_context=context, **arguments)
    return None if context is None else faust.SSLCredentials(context=context)
