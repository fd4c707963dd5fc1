"""What the runtime takes from inside Faust, aiokafka and confluent-kafka, by name: an upgrade that moves one fails
here."""

import inspect
import re
import subprocess
import sys

import aiokafka.client
import faust
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.protocol.group import JoinGroupRequest
from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import AclOperation, AlterConfigOpType, OffsetSpec, ResourcePatternType, ResourceType
from faust.transport.consumer import Consumer as FaustConsumer
from faust.transport.consumer import ThreadDelegateConsumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from mode.threads import MethodQueue, ServiceThread, WorkerThread

from lockstep_runtime.membership.faust_overrides import UNKNOWN_MEMBER, AiokafkaConnection, LockstepClient


def test_the_heartbeat_that_is_wrapped_is_where_it_was() -> None:
    assert inspect.iscoroutinefunction(GroupCoordinator._do_heartbeat)
    assert "_coordinator" in inspect.getsource(AIOKafkaConsumer.start)
    assert "self._consumer" in inspect.getsource(AIOKafkaConsumerThread.on_start)
    assert "self._thread" in inspect.getsource(ThreadDelegateConsumer)


def test_faust_thread_stop_calls_the_method_that_is_replaced() -> None:
    assert "self._thread.stop()" in inspect.getsource(ServiceThread.stop)
    assert "self.is_stopped.wait()" in inspect.getsource(WorkerThread.stop)


def test_faust_consumer_thread_has_the_names_that_are_replaced() -> None:
    assert hasattr(ServiceThread, "_thread_keepalive")
    assert "self.add_future(self._keepalive2())" in inspect.getsource(ServiceThread)
    assert "_create_worker_consumer(transport)" in inspect.getsource(AIOKafkaConsumerThread._create_consumer)
    assert "await self._getmany(" in inspect.getsource(FaustConsumer._wait_next_records)
    assert "fetcher_timeout=self._consumer_timeout" in inspect.getsource(AIOKafkaConsumer.start)
    assert "fetch_max_wait_ms=self._fetch_max_wait_ms" in inspect.getsource(AIOKafkaConsumer.start)
    assert "backoff = self._fetcher_timeout" in inspect.getsource(Fetcher._get_actions_per_node)


def test_faust_method_queue_wakes_its_thread_without_a_keepalive() -> None:
    for wakes in (MethodQueue.call, ServiceThread._stopped_set):
        assert "call_soon_threadsafe(" in inspect.getsource(wakes)


def test_aiokafka_consumer_connects_by_the_client_that_is_replaced() -> None:
    assert "self._client = AIOKafkaClient(" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert "await self._client.bootstrap()" in inspect.getsource(AIOKafkaConsumer.start)
    for method in ("bootstrap", "_get_conn"):
        ours, theirs = (inspect.signature(getattr(client, method)) for client in (LockstepClient, AIOKafkaClient))
        assert list(ours.parameters) == list(theirs.parameters)
        assert "create_conn(" in inspect.getsource(getattr(AIOKafkaClient, method))
    assert inspect.getsource(aiokafka.client).count("await create_conn(") == 2


def test_aiokafka_client_uses_of_a_connection_what_ours_has() -> None:
    used = set(re.findall(r"\bconn\.(\w+)", inspect.getsource(aiokafka.client)))
    assert used == {"connected", "close", "send"}
    for name in used:
        ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (AiokafkaConnection, AIOKafkaConnection))
        assert list(ours.parameters) == list(theirs.parameters)[: len(ours.parameters)]


def test_each_group_error_of_aiokafka_goes_through_the_wrapped_method() -> None:
    source = inspect.getsource(GroupCoordinator)
    assert source.count("await self._push_error_to_user(exc)") == 2  # of the coordination; of its other tasks
    assert "async def _push_error_to_user" not in source


def test_aiokafka_fetcher_that_fails_ends_the_task_that_is_watched() -> None:
    assert "self._fetch_task = create_task(self._fetch_requests_routine())" in inspect.getsource(Fetcher.__init__)
    source = inspect.getsource(Fetcher._fetch_requests_routine)
    assert 'raise Errors.KafkaError("Unexpected error during data retrieval") from exc' in source
    assert "self._fetcher = Fetcher(" in inspect.getsource(AIOKafkaConsumer.start)


def test_a_heartbeat_answers_whether_the_group_still_counts_us() -> None:
    source = inspect.getsource(GroupCoordinator._do_heartbeat)
    assert source.count("return True") == 2  # all is well; a rebalance is under way
    assert "return False" in source


def test_aiokafka_member_unknown_to_the_group_loses_its_id_at_heartbeat() -> None:
    assert "UnknownMemberIdError" in inspect.getsource(GroupCoordinator._do_heartbeat)
    assert "self.member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID" in inspect.getsource(GroupCoordinator.reset_generation)
    assert JoinGroupRequest.UNKNOWN_MEMBER_ID == UNKNOWN_MEMBER
    assert "_group_instance_id" in inspect.getsource(CoordinatorGroupRebalance)


def test_a_member_without_an_instance_id_leaves_its_group_with_a_word() -> None:
    source = inspect.getsource(GroupCoordinator._maybe_leave_group)
    assert "self._group_instance_id is None" in source
    assert "_maybe_leave_group" in inspect.getsource(GroupCoordinator.close)


def test_faust_decorator_of_agents_does_what_ours_does_and_a_search() -> None:
    source = inspect.getsource(faust.App.agent)
    assert "self.conf.Agent(" in source
    assert "on_error=self._on_agent_error" in source
    assert "self.agents[agent.name] = agent" in source
    assert "venusian.attach(agent" in source


def test_aiohttp_reads_no_certificates_where_a_service_imports_it() -> None:
    script = """
from lockstep_runtime.util.memory import without_default_certificates
with without_default_certificates():
    import aiohttp.connector
print(aiohttp.connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"])
"""
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "0"


def test_faust_has_the_settings_that_are_pinned() -> None:
    app = faust.App(
        "contract",
        broker=["kafka://127.0.0.1:1"],
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        broker_session_timeout=6.0,
        broker_rebalance_timeout=15.0,
        broker_heartbeat_interval=1.0,
        consumer_group_instance_id="one",
        stream_wait_empty=False,
        autodiscover=False,
    )
    assert app.conf.broker_session_timeout == 6.0
    assert app.conf.consumer_group_instance_id == "one"
    assert not app.conf.topic_allow_declare
    assert hasattr(app, "on_partitions_assigned")
    assert hasattr(app, "on_partitions_revoked")


def test_confluent_names_what_admin_uses() -> None:
    assert AlterConfigOpType.SET
    assert AlterConfigOpType.DELETE
    assert {"TOPIC", "GROUP"} <= set(ResourceType.__members__)
    assert {"LITERAL", "ANY"} <= set(ResourcePatternType.__members__)
    assert {"READ", "WRITE", "ALL", "ANY"} <= set(AclOperation.__members__)
    assert hasattr(OffsetSpec, "latest")
    assert IsolationLevel.READ_COMMITTED
    assert KafkaError._PARTITION_EOF < 0
