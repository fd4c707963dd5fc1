"""The files that a configuration depends on, and new credentials in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config.flow.changed_credentials import differing_keys, identities, is_credential, replace_credentials
from lockstep_config.flow.client_settings import connections
from lockstep_config.text.sources import named_files

from .conftest import LoadText, ab
from .test_config_providers import KAFKA, PROVIDERS

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def sasl(alias: str, password: str, user: str = "mirror") -> str:
    return (
        f"{alias}.security.protocol = SASL_PLAINTEXT\n{alias}.sasl.mechanism = SCRAM-SHA-512\n"
        f'{alias}.sasl.jaas.config = {SCRAM} username="{user}" password="{password}";\n'
    )


def test_watched_files_are_the_configuration_and_all_it_refers_to(load_text: LoadText, tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("password = p\nrack = r\n")
    (tmp_path / "topics").write_text("orders")
    loaded = load_text(
        PROVIDERS
        + sasl("A", f"${{file:{tmp_path}/s.properties:password}}")
        + f"A->B.topics = ${{dir:{tmp_path}:topics}}\nB.client.id = ${{env:ME}}\n",
        environment={"ME": "me"},
    )
    assert loaded.sources.files == {tmp_path / "mm2.properties", tmp_path / "s.properties", tmp_path / "topics"}


@pytest.mark.parametrize(
    ("key", "value", "file"),
    [
        ("A.ssl.truststore.location", " /t.p12 ", "/t.p12"),
        ("A->B.source.consumer.ssl.keystore.location", "/k.pem", "/k.pem"),
        ("ssl.keystore.location", "/k.pem", "/k.pem"),
        ("A.sasl.jaas.config", 'M required oauth.ssl.truststore.location="/ca.pem" x="y";', "/ca.pem"),
        ("A->B.offset-syncs.topic.location", "source", None),
        ("A.ssl.truststore.location", "", None),
        ("A.sasl.oauthbearer.token.endpoint.url", "file:///token", None),
        ("A.sasl.jaas.config", 'M required oauth.access.token.location="/token";', None),
        ("A.bootstrap.servers", "a:1", None),
    ],
)
def test_a_key_that_names_a_file(key: str, value: str, file: str | None) -> None:
    assert named_files({key: value}) == ({Path(file)} if file else set())


@pytest.mark.parametrize(
    ("name", "credential"),
    [
        ("sasl.jaas.config", True),
        ("source.consumer.ssl.keystore.password", True),
        ("lockstep.connector.source.producer.override.sasl.jaas.config", True),
        ("lockstep.connector.source.tasks.max", False),
        ("security.protocol", False),
        ("bootstrap.servers", False),
        ("lockstep.spark.conf.spark.ssl.keyPassword", False),
        ("topics", False),
    ],
)
def test_credential_keys_are_renewed_at_runtime(name: str, credential: bool) -> None:
    assert is_credential(name) is credential


def test_keys_that_need_a_restart_are_those_that_differ_credentials_apart(load_text: LoadText) -> None:
    before = load_text(sasl("A", "one") + "A->B.topics = a\ntasks.max = 2\n").sources.entries
    now = load_text(sasl("A", "two") + "A->B.topics = a, b\nB.client.id = x\n").sources.entries
    assert differing_keys(before, now, ["A", "B"]) == ("A->B.topics", "B.client.id", "tasks.max")
    assert differing_keys(before, before, ["A", "B"]) == ()


def test_a_value_from_elsewhere_is_the_same_value(load_text: LoadText) -> None:
    plain = load_text("tasks.max = 2\n").sources.entries
    provider = f"config.providers = env\nconfig.providers.env.class = {KAFKA}EnvVarConfigProvider\n"
    referred = load_text(provider + "tasks.max = ${env:N}\n", environment={"N": "2"}).sources.entries
    assert differing_keys(plain, referred, ["A", "B"]) == ()


def test_only_the_side_whose_credentials_changed_is_somebody_else(load_text: LoadText) -> None:
    before = identities(ab(load_text, sasl("A", "one") + sasl("B", "one")), {})
    now = identities(ab(load_text, sasl("A", "one") + sasl("B", "two") + "A->B.topics = other\n"), {})
    assert before["source"] == now["source"]
    assert before["target"] != now["target"]


def test_a_client_of_its_own_makes_the_side_somebody_else(load_text: LoadText) -> None:
    login = sasl("B", "one")
    own = f'A->B.producer.override.sasl.jaas.config = {SCRAM} username="w" password="%s";\n'
    before, now = (identities(ab(load_text, login + own % password), {}) for password in ("1", "2"))
    assert before["source"] == now["source"]
    assert before["target"] != now["target"]


def test_a_file_with_another_content_makes_the_side_somebody_else(load_text: LoadText) -> None:
    settings, key = ab(load_text, ""), Path("/k.pem")
    clients = replace(settings.clients, target_admin={"ssl.keystore.location": str(key)})
    settings = replace(settings, clients=clients)
    before, now = identities(settings, {key: "one"}), identities(settings, {key: "two", Path("/other"): "x"})
    assert before["source"] == now["source"]
    assert before["target"] != now["target"]


def test_only_credentials_are_taken_over_and_only_those_of_the_side(load_text: LoadText) -> None:
    present = ab(load_text, sasl("A", "one") + sasl("B", "one") + "A->B.topics = a\n")
    newer = ab(load_text, (sasl("A", "two") + sasl("B", "two", user="other") + "A->B.topics = b\nB.client.id = new\n"))
    renewed = replace_credentials(present, newer, ["target"])
    assert identities(renewed, {}) == {
        "source": identities(present, {})["source"],
        "target": identities(newer, {})["target"],
    }
    assert renewed.topics == present.topics
    assert renewed.target.properties["sasl.jaas.config"] == newer.target.properties["sasl.jaas.config"]
    assert renewed.source == present.source
    assert "client.id" not in renewed.clients.target_admin
    assert replace_credentials(renewed, newer, ["source", "target"]).clients.source_admin == newer.clients.source_admin


def test_a_credential_that_is_gone_is_gone(load_text: LoadText) -> None:
    present = ab(load_text, sasl("A", "one") + "A.sasl.login.retry.backoff.ms = 7\n")
    newer = ab(load_text, sasl("A", "one"))
    assert "sasl.login.retry.backoff.ms" not in replace_credentials(present, newer, ["source"]).clients.source_admin


def test_each_way_to_connect_to_a_side_is_there_once(load_text: LoadText) -> None:
    own = f'A->B.producer.override.sasl.jaas.config = {SCRAM} username="w" password="w";\n'
    settings = ab(load_text, sasl("A", "one") + sasl("B", "one") + own + "A.consumer.client.rack = r\n")
    assert [conf["sasl.username"] for conf in connections(settings, "source")] == ["mirror"]
    assert [conf["sasl.username"] for conf in connections(settings, "target")] == ["mirror", "w"]


def test_watched_files_include_a_folder_of_references(load_text: LoadText, tmp_path: Path) -> None:
    """Another file in it is another value."""
    folder = tmp_path / "secrets" / "racks"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("one")
    provider = "io.strimzi.kafka.KubernetesSecretConfigProvider"
    loaded = load_text(
        f"config.providers = secrets\nconfig.providers.secrets.class = {provider}\n"
        "A.consumer.client.rack = ${secrets:my/racks:*.txt}\n",
        environment={"LOCKSTEP_SECRETS_DIR": str(tmp_path / "secrets")},
    )
    assert loaded.sources.files == {tmp_path / "mm2.properties", folder / "a.txt", folder}
