"""Java's client properties as librdkafka's settings and aiokafka's arguments."""

import time
from pathlib import Path

import pytest

from lockstep_config.clients.sasl import Credentials, read_login
from lockstep_config.clients.token_source import shared_token_source
from lockstep_config.flow.client_settings import (
    client_id,
    offset_syncs_consumer,
    offset_syncs_producer,
    source_admin,
    source_consumer,
    target_admin,
    target_consumer,
    target_producer,
    wire_security,
)

from .conftest import A_TO_B, LoadText, MistakesOf, ab

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


COMMON = {
    "security.protocol": "PLAINTEXT",
    "enable.metrics.push": "false",
    "socket.keepalive.enable": "true",
    "connections.max.idle.ms": "180000",
    "reconnect.backoff.max.ms": "1000",
}


def test_a_plain_cluster_needs_little(load_text: LoadText) -> None:
    settings = ab(load_text)
    assert source_admin(settings) == COMMON | {
        "bootstrap.servers": "a:9092",
        "client.id": "A->B|MirrorSourceConnector|replication-source-admin",
    }
    assert target_producer(settings, "state-producer") == COMMON | {
        "bootstrap.servers": "b:9092",
        "client.id": "A->B|Lockstep|state-producer",
        "acks": "all",
        "enable.idempotence": "true",
    }
    assert target_consumer(settings, "checkpoints-target-consumer") == COMMON | {
        "bootstrap.servers": "b:9092",
        "client.id": "A->B|MirrorCheckpointConnector|checkpoints-target-consumer",
        "group.id": "lockstep-topic-sync-A-B",
        "enable.auto.commit": "false",
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "earliest",
    }


@pytest.mark.parametrize(
    ("java", "value", "librdkafka", "expected"),
    [
        ("fetch.min.bytes", "1000000", "fetch.min.bytes", "1000000"),
        ("fetch.max.wait.ms", "100", "fetch.wait.max.ms", "100"),
        ("max.partition.fetch.bytes", "4000000", "max.partition.fetch.bytes", "4000000"),
        ("isolation.level", "READ_COMMITTED", "isolation.level", "read_committed"),
        ("auto.offset.reset", "latest", "auto.offset.reset", "latest"),
        ("client.rack", "eu-1a", "client.rack", "eu-1a"),
        ("request.timeout.ms", "20000", "socket.timeout.ms", "20000"),
        ("request.timeout.ms", "900000", "socket.timeout.ms", "300000"),
        ("receive.buffer.bytes", "-1", "socket.receive.buffer.bytes", "0"),
        ("send.buffer.bytes", "65536", "socket.send.buffer.bytes", "65536"),
        ("metadata.max.age.ms", "60000", "metadata.max.age.ms", "60000"),
        ("reconnect.backoff.ms", "5000", "reconnect.backoff.max.ms", "5000"),
        ("reconnect.backoff.max.ms", "20", "reconnect.backoff.ms", "20"),
        ("fetch.max.bytes", "500000", "message.max.bytes", "500000"),
        ("fetch.max.bytes", "200000000", "receive.message.max.bytes", "200000512"),
        ("enable.auto.commit", "true", "enable.auto.commit", "false"),
    ],
)
def test_a_java_consumer_property_has_its_counterpart(
    load_text: LoadText, java: str, value: str, librdkafka: str, expected: str
) -> None:
    settings = ab(load_text, f"A.consumer.{java} = {value}\n")
    assert source_consumer(settings, "replication-consumer")[librdkafka] == expected


@pytest.mark.parametrize(("number", "used"), [(900_000, 300_000), (0, 10)])
def test_a_number_beyond_librdkafkas_limits_is_noted(load_text: LoadText, number: int, used: int) -> None:
    (note,) = load_text(f"A.consumer.request.timeout.ms = {number}\n").notes
    assert str(note).endswith(
        f":5: A.consumer.request.timeout.ms: is {number}, beyond what librdkafka takes: {used} is used"
    )


@pytest.mark.parametrize("name", ["receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms"])
def test_minus_one_is_accepted_silently_where_java_has_it(load_text: LoadText, name: str) -> None:
    assert load_text(f"A.consumer.{name} = -1\n").notes == ()


@pytest.mark.parametrize("name", ["fetch.max.wait.ms", "fetch.max.bytes", "max.partition.fetch.bytes"])
@pytest.mark.parametrize(("number", "limit"), [(-1, "least it may be is 0"), (2**31, "most it may be is 2147483647")])
def test_number_that_java_refuses_is_a_mistake(mistakes_of: MistakesOf, name: str, number: int, limit: str) -> None:
    (mistake,) = mistakes_of(f"A.consumer.{name} = {number}\n")
    assert mistake == f"5 A.consumer.{name}: is {number}, out of range: the {limit}"


def test_slots_fetch_with_the_numbers_that_the_notes_name(load_text: LoadText) -> None:
    loaded = load_text(
        "A.consumer.fetch.max.wait.ms = 600000\nA.consumer.fetch.min.bytes = 0\n"
        "A.consumer.fetch.max.bytes = 2147483647\nA.consumer.max.partition.fetch.bytes = 2000000000\n"
        "A.consumer.metadata.max.age.ms = 9000000000\n"
    )
    fetch = loaded.flow(A_TO_B).data_plane.fetch
    used = [fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes, fetch.max_partition_bytes]
    assert [*used, fetch.replica_lease_s] == [300_000, 1, 2_147_483_135, 1_000_000_000, 86_400.0]
    noted = [int(note.message.rpartition(": ")[2].split()[0]) for note in loaded.notes]
    assert noted == [*used, 86_400_000]


def test_mm2_058_059_data_plane_has_its_consumer_and_producer_settings(load_text: LoadText) -> None:
    data_plane = ab(
        load_text,
        "A.consumer.fetch.min.bytes = 1000000\nA.consumer.fetch.max.wait.ms = 100\nA.consumer.fetch.max.bytes = 7\n"
        "A.consumer.max.partition.fetch.bytes = 4000000\nA.consumer.isolation.level = read_committed\n"
        "A->B.source.consumer.auto.offset.reset = latest\nB.producer.compression.type = zstd\n"
        "A->B.producer.override.compression.type = lz4\n",
    ).data_plane
    fetch = data_plane.fetch
    assert (fetch.min_bytes, fetch.max_wait_ms, fetch.max_bytes, fetch.max_partition_bytes) == (
        10**6,
        100,
        7,
        4 * 10**6,
    )
    assert (data_plane.isolation_level, data_plane.auto_offset_reset) == ("read_committed", "latest")
    assert data_plane.compression_type == "lz4"


@pytest.mark.parametrize("form", ["A->B.{0}", "A->B.{1}.{0}", "{2}.{0}"], ids=["flow", "side", "cluster"])
@pytest.mark.parametrize(("side", "kind"), [("source", "producer"), ("source", "admin"), ("target", "admin")])
def test_mm2_060_061_062_063_064_065_clients_have_keys_of_kind_and_side(
    load_text: LoadText, form: str, side: str, kind: str
) -> None:
    cluster = {"source": "A", "target": "B"}[side]
    key = form.format(f"{kind}.client.dns.lookup", side, cluster)
    clients = ab(load_text, f"{key} = resolve_canonical_bootstrap_servers_only\n").clients
    properties = getattr(clients, f"{side}_{kind}")
    assert properties["client.dns.lookup"] == "resolve_canonical_bootstrap_servers_only"
    assert properties["bootstrap.servers"] == f"{cluster.lower()}:9092"
    assert "client.dns.lookup" not in clients.source_consumer
    others = {"source_admin", "target_admin", "source_producer"} - {f"{side}_{kind}"}
    if not form.startswith("A->B.{0}"):
        assert not any("client.dns.lookup" in getattr(clients, client) for client in others)


def test_a_users_client_id_goes_before_the_role(load_text: LoadText) -> None:
    settings = ab(load_text, "A.consumer.client.id = mine\n")
    named = source_consumer(settings, "replication-consumer")["client.id"]
    assert named == "mine|A->B|MirrorSourceConnector|replication-consumer"
    assert client_id(settings, "heartbeats-target-admin", {}) == "A->B|MirrorHeartbeatConnector|heartbeats-target-admin"


def test_mm2_030_109_the_clients_of_offset_syncs_follow_their_topic(load_text: LoadText) -> None:
    for location, server in (("source", "a:9092"), ("target", "b:9092")):
        settings = ab(load_text, f"offset-syncs.topic.location = {location}\n")
        for client, kind in (
            (offset_syncs_producer(settings), "MirrorSourceConnector|offset-syncs-{}-producer"),
            (offset_syncs_consumer(settings), "MirrorCheckpointConnector|offset-syncs-{}-consumer"),
        ):
            assert client["bootstrap.servers"] == server
            assert client["client.id"] == f"A->B|{kind.format(location)}"


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("scram-sha-512", SCRAM)]
)
def test_sasl_credentials_reach_both_clients(load_text: LoadText, mechanism: str, module: str) -> None:
    loaded = load_text(
        f"B.security.protocol = SASL_PLAINTEXT\nB.sasl.mechanism = {mechanism}\n"
        f'B.sasl.jaas.config = {module} required username="mirror" password="p;=\\\\"q";\n'
    )
    conf = target_admin(loaded.flow(A_TO_B))
    assert conf["security.protocol"] == "SASL_PLAINTEXT"
    assert conf["sasl.mechanism"] == mechanism.upper()
    assert (conf["sasl.username"], conf["sasl.password"]) == ("mirror", 'p;="q')
    assert wire_security(loaded.clusters["B"]) == {"login": Credentials(mechanism.upper(), "mirror", 'p;="q')}
    assert wire_security(loaded.clusters["A"]) == {}


def test_token_source_is_common_to_both_clients(load_text: LoadText, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("of-the-file")
    loaded = load_text(
        "B.security.protocol = SASL_PLAINTEXT\nB.sasl.mechanism = OAUTHBEARER\n"
        f"B.sasl.oauthbearer.token.endpoint.url = {token.as_uri()}\n"
    )
    conf = target_admin(loaded.flow(A_TO_B))
    assert conf["sasl.mechanism"] == "OAUTHBEARER"
    text, until, principal, extensions = conf["oauth_cb"]("")
    assert (text, principal, extensions) == ("of-the-file", "", {})
    assert until > time.time()
    source = shared_token_source(wire_security(loaded.clusters["B"])["login"].tokens)
    assert source is conf["oauth_cb"].source
    assert target_consumer(loaded.flow(A_TO_B), "x")["oauth_cb"].source is conf["oauth_cb"].source


@pytest.mark.parametrize(
    ("text", "username", "password"),
    [
        (f'{PLAIN} required username="u" password="p";', "u", "p"),
        (f"{PLAIN} required username='u' password='p' ;", "u", "p"),
        (f"{PLAIN} required\n  username=u\n  password=p\n;", "u", "p"),
        (f'{PLAIN} REQUIRED serviceName="kafka" username="u v" password="";', "u v", ""),
        (f'  {PLAIN}  required  password = "p"  username = "u";  ', "u", "p"),
    ],
)
def test_a_jaas_line_is_read_as_java_reads_it(text: str, username: str, password: str) -> None:
    credentials = read_login({"sasl.mechanism": "PLAIN", "sasl.jaas.config": text})
    assert credentials == Credentials("PLAIN", username, password)
    assert "password" not in repr(credentials)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("", "0 A.sasl.mechanism: is GSSAPI (Java's default, for none is set): Kerberos is not supported"),
        ("A.sasl.mechanism=GSSAPI\n", "6 A.sasl.mechanism: is GSSAPI: Kerberos is not supported: use SCRAM-SHA-512"),
        ("A.sasl.mechanism=OAUTHBEARER\n", "0 A.sasl.oauthbearer.token.endpoint.url: is missing: say where tokens"),
        ("A.sasl.mechanism=AWS_MSK_IAM\n", "0 A.sasl.jaas.config: is missing: AWS_MSK_IAM needs one, as in"),
        ("A.sasl.mechanism=PLAIN\n", "0 A.sasl.jaas.config: is missing: PLAIN needs one"),
        (
            f"A.sasl.mechanism=PLAIN\nA.sasl.jaas.config={PLAIN} required;\n",
            '7 A.sasl.jaas.config: has no username="..."',
        ),
        (
            f"A.sasl.mechanism=PLAIN\nA.sasl.jaas.config={PLAIN} required username=u password=hush\n",
            "7 A.sasl.jaas.config: does not end with a semicolon",
        ),
        (
            f"A.sasl.mechanism=PLAIN\nA.sasl.jaas.config={SCRAM} required username=u password=hush;\n",
            f"7 A.sasl.jaas.config: names the module {SCRAM}, but sasl.mechanism PLAIN takes {PLAIN}",
        ),
        (
            f"A.sasl.mechanism=PLAIN\nA.sasl.jaas.config={PLAIN} required username=u password=hush hush;\n",
            '7 A.sasl.jaas.config: has something behind option 2 that is no name="value"',
        ),
        (
            f"A.sasl.mechanism=SCRAM-SHA-256\nA.sasl.jaas.config={SCRAM} required tokenauth=true username=u "
            "password=hush;\n",
            "7 A.sasl.jaas.config: asks for a delegation token",
        ),
        (
            "A.sasl.mechanism=PLAIN\nA.sasl.login.callback.handler.class=com.example.Login\n",
            "7 A.sasl.login.callback.handler.class: is 'com.example.Login': Java classes cannot run here",
        ),
    ],
)
def test_untranslatable_sasl_setting_is_named(mistakes_of: MistakesOf, lines: str, sentence: str) -> None:
    mistakes = mistakes_of("A.security.protocol=SASL_PLAINTEXT\n" + lines)
    assert [line[: len(sentence)] for line in mistakes] == [sentence]
    assert "hush" not in "".join(mistakes)


def test_each_call_gives_a_dict_of_its_own(load_text: LoadText) -> None:
    settings = ab(load_text)
    source_admin(settings)["bootstrap.servers"] = "changed"
    assert source_admin(settings)["bootstrap.servers"] == "a:9092"
