"""TLS, mTLS and every SASL mechanism on real brokers: what is mirrored is the same, sessions are renewed under load,
and what a broker or we refuse is one line, and over when it is mended."""

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from lockstep_config.clients.azure import SPRING_HANDLERS
from lockstep_config.flow.client_settings import wire_connection
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from tests.support.broker import started
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    end_offsets,
    produce,
    read_topic,
    unique_name,
)
from tests.support.eventually import wait_until
from tests.support.managed_identity import ManagedIdentity
from tests.support.processes import end, kill, show, spawn
from tests.support.proxy import Proxy
from tests.support.secured import PASSWORD, USER, Secured, SecuredBroker
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.topic_comparison import compare

SESSION_MS = 5_000
WITHIN = 180.0
"""For what takes seconds on a machine of one's own."""

LATE = 10
"""Connections of librdkafka that may end with their session, of several hundred renewals: it renews when a tenth is
left, which nobody can set. That is half a second here, and on a busy machine a request reaches the broker later now and
then; it is sent again. Those that do not renew at all end a hundred times."""


class Sides:
    """Two brokers with every listener, whose sessions end after five seconds."""

    def __init__(self, folder: Path) -> None:
        self.secured = Secured.made(folder)
        self.a = SecuredBroker("A", self.secured, session_ms=SESSION_MS)
        self.b = SecuredBroker("B", self.secured, session_ms=SESSION_MS)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    made = Sides(tmp_path_factory.mktemp("secured"))
    with made.secured.tokens, started(made.a, made.b):
        made.a.add_users()
        made.b.add_users()
        yield made


class Mirrored:
    """`lockstep run` between both, in both directions, under aliases and names of one test."""

    def __init__(self, folder: Path, sides: Sides, how_a: str, how_b: str) -> None:
        self.sides = sides
        self.mark = unique_name("s").replace("-", "")
        self.alias_a, self.alias_b = f"a{self.mark}", f"b{self.mark}"
        there, back = f"{self.alias_a}->{self.alias_b}", f"{self.alias_b}->{self.alias_a}"
        self.file = two_cluster_file(
            folder,
            (self.alias_a, "localhost:1"),  # the last line of a key counts
            (self.alias_b, "localhost:1"),
            f"{there}.enabled = true",
            f"{back}.enabled = true",
            f"topics = {self.mark}-.*",
            f"groups = {self.mark}-.*",
            "tasks.max = 1",
            "checkpoints.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            "emit.checkpoints.interval.seconds = 1",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 1",
        )
        own = [line for line in self.file.read_text().splitlines() if "localhost:1" not in line]
        lines = [*own, *sides.a.lines(how_a, self.alias_a), *sides.b.lines(how_b, self.alias_b)]
        self.file.write_text("\n".join(lines) + "\n")
        self.log = self.file.with_suffix(".log")

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [sys.executable, "-m", "lockstep_cli", "run", str(self.file), "--log-format", "json"]
        process = spawn(command, output=self.log)
        try:
            yield
        except BaseException:
            show(self.log, lines=80)
            raise
        else:
            assert end(process) == 0, self.log.read_text()
        finally:
            kill(process)

    def topics(self) -> tuple[tuple[str, str, str, str], tuple[str, str, str, str]]:
        """For each direction: where a topic is, its name, where its copy is, and the copy's name."""
        a, b = self.sides.a.bootstrap, self.sides.b.bootstrap
        orders, pay = f"{self.mark}-orders", f"{self.mark}-pay"
        return (a, orders, b, f"{self.alias_a}.{orders}"), (b, pay, a, f"{self.alias_b}.{pay}")

    def wait_copied(self) -> None:
        """Until both copies are as long as what they are copies of."""
        for source, topic, target, copy in self.topics():
            wait_until(partial(as_long, source, topic, target, copy), within=WITHIN, what=copy)

    def troubles(self) -> list[dict[str, Any]]:
        """Warnings and errors that were logged."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("level", "").lower() in ("warning", "error", "critical")]

    def login_troubles(self) -> list[str]:
        """Those that tell of a login, a certificate or a token: a slow machine has others."""
        words = ("login", "certificate", "access token", "Authentication")
        texts = [str(line.get("text")) for line in self.troubles()]
        return [text for text in texts if any(word in text for word in words)]


def ends(bootstrap: str, topic: str) -> int:
    with contextlib.suppress(KeyError, KafkaException):  # not there yet, or without a leader
        return sum(end_offsets(bootstrap, topic).values())
    return -1


def as_long(source: str, topic: str, target: str, copy: str) -> bool:
    return ends(target, copy) == ends(source, topic)


def is_committed_at(bootstrap: str, group: str, topic: str, at: int) -> bool:
    return committed_offset(bootstrap, group, topic, 0) == at


def numbered(stem: str, count: int, first: int = 0) -> list[Record]:
    return [Record(key=f"{n % 7}".encode(), value=f"{stem}{n}".encode()) for n in range(first, first + count)]


@pytest.mark.parametrize(
    ("how_a", "how_b"),
    [
        ("PLAIN", "SCRAM-SHA-256"),
        pytest.param("TLS", "MTLS", marks=pytest.mark.long),
        pytest.param("SCRAM-SHA-512", "OAUTHBEARER", marks=pytest.mark.long),
    ],
)
def test_mirror_both_ways_is_the_same_under_any_login(tmp_path: Path, sides: Sides, how_a: str, how_b: str) -> None:
    """Each mechanism is once that of the source and once that of the target of a flow."""
    scene = Mirrored(tmp_path, sides, how_a, how_b)
    group = f"{scene.mark}-billing"
    for source, topic, _, _ in scene.topics():
        create_topic(source, topic)
        produce(source, topic, numbered(topic, 500))
        commit_offset(source, group, topic, 0, 300)
    with scene.running():
        scene.wait_copied()
        for source, topic, target, copy in scene.topics():
            assert compare(read_topic(source, topic), read_topic(target, copy)).equal
            wait_until(partial(is_committed_at, target, group, copy, 300), within=WITHIN, what="the group")
    for _, topic, target, copy in scene.topics():
        alias = copy.removesuffix(f".{topic}")
        assert ends(target, "heartbeats") > 0
        assert ends(target, f"{alias}.checkpoints.internal") > 0
    assert scene.login_troubles() == []


@pytest.mark.long
def test_sessions_are_renewed_under_load_and_nothing_is_lost_or_doubled(tmp_path: Path, sides: Sides) -> None:
    """Thirty seconds of traffic, six sessions of each connection; tokens of twenty seconds on one side."""
    sides.secured.tokens.lifetime_s = 20.0
    before = len(sides.a.expired()), len(sides.b.expired())
    scene = Mirrored(tmp_path, sides, "SCRAM-SHA-512", "OAUTHBEARER")
    (source, orders, _, _), (other, pay, _, _) = scene.topics()
    create_topic(source, orders, partitions=3)
    create_topic(other, pay, partitions=3)
    stopping = threading.Event()

    def write(bootstrap: str, topic: str) -> None:
        at = 0
        while not stopping.is_set():
            produce(bootstrap, topic, numbered(topic, 500, at))
            at += 500
            time.sleep(0.2)

    writers = [threading.Thread(target=write, args=where, daemon=True) for where in ((source, orders), (other, pay))]
    try:
        with scene.running():
            for writer in writers:
                writer.start()
            scene_topics = scene.topics()
            wait_until(lambda: all(ends(w, c) > 0 for _, _, w, c in scene_topics), within=WITHIN, what="both begin")
            time.sleep(30.0)
            stopping.set()
            for writer in writers:
                writer.join()
            scene.wait_copied()
            for first, topic, target, copy in scene_topics:
                assert compare(read_topic(first, topic), read_topic(target, copy)).equal
    finally:
        stopping.set()
        sides.secured.tokens.lifetime_s = 3600.0
    expired = [*sides.a.expired()[before[0] :], *sides.b.expired()[before[1] :]]
    assert [line for line in expired if of_ours(line)] == []
    assert len(expired) <= LATE, expired
    assert scene.login_troubles() == []


def of_ours(expired: str) -> bool:
    """Whether a connection that the broker ended is one of ours, as the data plane and Faust have them."""
    client = expired.partition("clientId=")[2].partition(",")[0]
    role = client.rpartition("|")[2]
    return role.startswith(("replication-consumer-", "replication-producer-", "producer-id")) or client.count("|") == 1


@pytest.mark.long
async def test_a_connection_that_does_not_renew_its_session_is_ended(sides: Sides) -> None:
    """Why connections log in again, and that the brokers' log would tell."""
    settings = wire_connection(sides.a.properties("SCRAM-SHA-512"), "test", 10.0)
    host, _, port = sides.a.address("SASLTLS").partition(":")
    before = len(sides.a.expired())
    connection = await Connection.open(host, int(port), settings)
    assert connection._session is not None
    connection._session.end()
    await asyncio.sleep(SESSION_MS / 1000 + 1)
    with pytest.raises(BrokerUnreachable):
        await connection.request(load_message("api_versions", 0, "request").ApiVersionsRequest())
    connection.close()
    assert len(sides.a.expired()) == before + 1


@pytest.mark.long
def test_revoked_user_is_one_line_and_recovers(tmp_path: Path, sides: Sides) -> None:
    scene = Mirrored(tmp_path, sides, "TLS", "SCRAM-SHA-512")
    for source, topic, _, _ in scene.topics():
        create_topic(source, topic)
        produce(source, topic, numbered(topic, 100))

    def refused() -> list[dict[str, Any]]:
        return [line for line in scene.troubles() if "user mirror (SCRAM-SHA-512)" in line.get("text", "")]

    try:
        with scene.running():
            scene.wait_copied()
            sides.b.set_password("another")
            wait_until(lambda: len(refused()) >= 4, within=WITHIN, what="each service says so")
            time.sleep(10.0)
            for source, topic, _, _ in scene.topics():
                produce(source, topic, numbered(topic, 100, 100))
            sides.b.set_password(PASSWORD)
            scene.wait_copied()
            for source, topic, target, copy in scene.topics():
                assert compare(read_topic(source, topic), read_topic(target, copy)).equal
    finally:
        sides.b.set_password(PASSWORD)
    assert all("check sasl.jaas.config" in line["text"] for line in refused())
    said = [(line.get("service"), line.get("flow"), line["message"], line.get("cluster")) for line in refused()]
    assert len(said) == len(set(said)), said


@pytest.mark.long
@pytest.mark.parametrize(
    ("listener", "sentence"),
    [
        ("EXPIRED", "certificate has expired): renew the broker's certificate"),
        ("ELSEWHERE", "Hostname mismatch, certificate is not valid for 'localhost'): reach the brokers by a name"),
    ],
)
def test_certificate_not_accepted_is_one_line_and_recovers(
    tmp_path: Path, sides: Sides, listener: str, sentence: str
) -> None:
    with Proxy() as proxy:
        proxy.forward_to("127.0.0.1", int(sides.b.address(listener).rpartition(":")[2]))
        with beating(tmp_path, sides, f"localhost:{proxy.port}", sides.b.lines("TLS")) as service:
            line = service.hear("cluster unreachable", cluster="B", within=WITHIN)
            assert sentence in line["text"]
            time.sleep(5.0)
            assert service.has_said_each_cause_once()
            proxy.forward_to("127.0.0.1", int(sides.b.address("TLS").rpartition(":")[2]))
            service.hear("cluster reachable again", within=WITHIN)
            service.wait_ready(WITHIN)


@pytest.mark.long
def test_a_token_server_that_is_away_is_one_line_and_over_when_it_is_back(tmp_path: Path, sides: Sides) -> None:
    tokens = sides.secured.tokens
    tokens.close()
    try:
        with beating(tmp_path, sides, sides.b.address("SASLTLS"), sides.b.lines("OAUTHBEARER")) as service:
            line = service.hear("cluster unreachable", cluster="B", within=WITHIN)
            assert f"no access token: {tokens.url} cannot be asked for a token: Connection refused" in line["text"]
            time.sleep(5.0)
            assert service.has_said_each_cause_once()
            tokens.open()
            service.hear("cluster reachable again", within=WITHIN)
            service.wait_ready(WITHIN)
    finally:
        tokens.close()
        tokens.open()


@pytest.mark.long
def test_azure_identity_logs_in_and_its_absence_is_one_line(tmp_path: Path, sides: Sides) -> None:
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    lines = [line for line in sides.b.lines("OAUTHBEARER") if ".sasl." not in line] + [
        "B.sasl.mechanism = OAUTHBEARER",
        f"B.sasl.login.callback.handler.class = {SPRING_HANDLERS[0]}",
        f'B.sasl.jaas.config = {jaas} azure.credential.managed-identity-enabled="true";',
    ]
    with ManagedIdentity(lambda: sides.secured.tokens.token(USER)) as identity:
        identity.status = 400
        environment = identity.environment
        with beating(tmp_path, sides, sides.b.address("SASLTLS"), lines, environment) as service:
            line = service.hear("cluster unreachable", cluster="B", within=WITHIN)
            assert "no access token: Azure gave no token for https://localhost/.default" in line["text"]
            time.sleep(5.0)
            assert service.has_said_each_cause_once()
            identity.status = 200
            service.hear("cluster reachable again", within=WITHIN)
            service.wait_ready(WITHIN)
        assert {query["resource"][0] for query in identity.asked} == {"https://localhost"}


@contextmanager
def beating(
    folder: Path, sides: Sides, bootstrap: str, lines: list[str], environment: Mapping[str, str] | None = None
) -> Iterator[ServiceProcess]:
    """The heartbeat service from A to a B that is found at this address."""
    others = [line for line in lines if ".bootstrap.servers" not in line]
    file = two_cluster_file(folder, ("A", sides.a.bootstrap), ("B", bootstrap), "A->B.enabled = true", *others)
    with ServiceProcess("lockstep_heartbeat", file, "A->B", environment=environment) as service:
        yield service
