"""Client keys: the rows of `docs/reference/client-keys.md`, held against the clients."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from lockstep_config.clients.librdkafka import stores_translated, translated
from lockstep_config.clients.tls import load_material, read_tls
from lockstep_config.flow.client_settings import client_id
from lockstep_config.flow.model import Configuration
from lockstep_config.keys.client_keys import (
    CLIENT,
    CONNECTION,
    CONNECTION_REFUSED,
    CONNECTION_USED,
    CONNECTION_WITHOUT_EFFECT,
    NO_RESET,
    ClientKey,
    ClientKind,
)
from lockstep_config.keys.key_types import KeyStatus
from lockstep_kafka.wire import cluster
from tests.support.certificates import Authority
from tools.docs.client_keys import how

from .conftest import A_TO_B, LoadText, MistakesOf

KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
SECURE = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": SCRAM,
    "ssl.truststore.type": "PEM",
    "ssl.keystore.type": "PEM",
}


def test_each_connection_key_has_one_fate() -> None:
    fates = [set(CONNECTION_USED), set(CONNECTION_REFUSED), set(CONNECTION_WITHOUT_EFFECT)]
    assert set.union(*fates) == CONNECTION
    assert sum(map(len, fates)) == len(CONNECTION)


def test_no_client_key_without_a_reason_or_a_use() -> None:
    for kind in KINDS:
        for key in CLIENT[kind].values():
            records, elsewhere = how(key, kind)
            assert records or elsewhere, key.name


@pytest.mark.parametrize("kind", ["consumer", "producer"])
def test_every_used_client_key_states_its_effect_on_records(kind: ClientKind) -> None:
    used = [key for key in CLIENT[kind].values() if key.status is KeyStatus.USED]
    assert [key.name for key in used if bool(key.records) == bool(key.not_records)] == []


USED = [
    (kind, name)
    for kind in ("consumer", "producer")
    for name, key in CLIENT[kind].items()
    if key.status is KeyStatus.USED
]


@pytest.mark.parametrize(("kind", "name"), USED)
def test_client_key_changes_record_clients_where_the_table_states_it(
    kind: ClientKind, name: str, load_text: LoadText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "ClusterClient", lambda *arguments: arguments)
    key = CLIENT[kind][name]
    line = f"{'A' if kind == 'consumer' else 'B'}.{kind}.{name} = {unusual(key)}\n"
    changed = of_records(load_text(line)) != of_records(load_text(""))
    assert changed == bool(key.records)


def of_records(loaded: Configuration) -> tuple[object, ...]:
    """All that the data plane takes from a file for its own connections, and for what goes over them."""
    settings = loaded.flow(A_TO_B)
    ends = (("A", settings.clients.source_consumer), ("B", settings.clients.data_producer))
    clusters = [cluster.connect_cluster(alias, has, client_id(settings, "replication", has)) for alias, has in ends]
    return settings.data_plane, *clusters


def unusual(key: ClientKey) -> str:
    """A value that is not the default."""
    if key.choices:
        return [choice for choice in key.choices if choice != NO_RESET][-1]
    if key.maximum is not None:
        return str(key.maximum // 2)
    return "false" if key.name == "check.crcs" else "other"


OTHER_VALUE = {
    "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "ssl.endpoint.identification.algorithm": "",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": SCRAM.replace('"u"', '"other"').replace('"p"', '"others"'),
}
TOGETHER = {"ssl.keystore.certificate.chain": "ssl.keystore.key", "ssl.keystore.key": "ssl.keystore.certificate.chain"}


@pytest.mark.parametrize("name", sorted(name for name in CONNECTION_USED if "`" in CONNECTION_USED[name]))
def test_translated_connection_key_has_the_value_of_the_table(name: str, tmp_path: Path) -> None:
    own = Authority().certify("client")
    values = {
        "ssl.truststore.location": str(own.pem(tmp_path / "own.pem")),
        "ssl.keystore.location": str(tmp_path / "own.pem"),
        "ssl.truststore.certificates": own.certificate_pem,
        "ssl.keystore.certificate.chain": own.chain_pem,
        "ssl.keystore.key": own.key_pem(),
        **OTHER_VALUE,
    }
    properties = {"bootstrap.servers": "a:9092", **SECURE}
    before = settings_of(properties)
    changed = {name: values[name]}
    if name in TOGETHER:
        changed[TOGETHER[name]] = values[TOGETHER[name]]
    after = settings_of(properties | changed)
    for setting in re.findall(r"`([^`]+)`", CONNECTION_USED[name]):
        assert after.get(setting) != before.get(setting), setting


def settings_of(properties: Mapping[str, str]) -> dict[str, str]:
    translation = translated(properties, "consumer")
    assert translation.refused == ()
    return translation.settings | stores_translated(load_material(read_tls(properties)))


@pytest.mark.parametrize("name", sorted(CONNECTION_REFUSED))
def test_a_refused_connection_key_stops_the_start(name: str, mistakes_of: MistakesOf) -> None:
    lines = [f"A.{key} = {value}" for key, value in SECURE.items()]
    mistakes = mistakes_of("\n".join([*lines, f"A.{name} = anything"]) + "\n")
    assert [line for line in mistakes if f" A.{name}: " in line]


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_without_effect_is_named_with_the_reason_of_the_table(kind: ClientKind, load_text: LoadText) -> None:
    unused = [key for key in CLIENT[kind].values() if key.status is KeyStatus.WITHOUT_EFFECT]
    loaded = load_text("".join(f"A.{kind}.{key.name} = 1\n" for key in unused))
    assert [(u.key, u.message) for u in loaded.unused] == [
        (f"A.{kind}.{key.name}", f"has no effect: {key.reason}") for key in unused
    ]


def test_the_levels_of_compression_reach_the_data_plane(load_text: LoadText) -> None:
    lines = "".join(f"B.producer.compression.{codec}.level = {level}\n" for codec, level in LEVELS.items())
    how = load_text(lines).flow(A_TO_B).data_plane.compression
    assert {"gzip": how.gzip_level, "lz4": how.lz4_level, "zstd": how.zstd_level} == LEVELS


def test_fetch_settings_come_from_the_consumer(load_text: LoadText) -> None:
    fetch = load_text("").flow(A_TO_B).data_plane.fetch
    assert (fetch.rack, fetch.replica_lease_s, fetch.grows) == ("", 300.0, True)
    lines = "".join(
        f"A.consumer.{line}\n"
        for line in ("client.rack = rack-2", "metadata.max.age.ms = 1500", "max.partition.fetch.bytes = 2000000")
    )
    fetch = load_text(lines).flow(A_TO_B).data_plane.fetch
    assert (fetch.rack, fetch.replica_lease_s, fetch.grows) == ("rack-2", 1.5, False)
    assert fetch.max_partition_bytes == 2_000_000


LEVELS = {"gzip": 1, "lz4": 17, "zstd": -5}


@pytest.mark.parametrize(
    ("codec", "level"), [("gzip", "0"), ("gzip", "10"), ("lz4", "0"), ("zstd", "23"), ("zstd", "x")]
)
def test_a_level_that_java_refuses_is_refused(codec: str, level: str, mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(f"B.producer.compression.{codec}.level = {level}\n")
    assert mistake.startswith(f"5 B.producer.compression.{codec}.level: is ")


@pytest.mark.parametrize("word", ["auto", "never", "true", "false"])
def test_recompress_has_words_and_the_former_booleans(word: str, load_text: LoadText) -> None:
    loaded = load_text(f"A->B.lockstep.recompress = {word.title()}\nB.producer.compression.type = zstd\n")
    assert loaded.flow(A_TO_B).data_plane.compression.recompress == word
    assert loaded.notes == ()


def test_recompress_is_automatic_and_needs_a_compression_type(load_text: LoadText) -> None:
    assert load_text("").flow(A_TO_B).data_plane.compression.recompress == "auto"
    (note,) = load_text("A->B.lockstep.recompress = true\n").notes
    assert note.message == (
        "is true, but no compression.type of the producer on B says into what: batches pass as they are"
    )
