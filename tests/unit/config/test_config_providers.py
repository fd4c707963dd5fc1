"""`${file:}`, `${env:}` and `${dir:}`."""

import os
from pathlib import Path

import pytest

from lockstep_config import ConfigurationError, load
from lockstep_config.text.config_providers import (
    PROVIDERS_KEY,
    SECRETS_CLASS,
    SECRETS_VARIABLE,
    Provider,
    Unresolvable,
    read_providers,
)
from lockstep_config.text.files import LARGEST
from lockstep_config.text.properties import Entry

from .conftest import A_TO_B, LoadText, MistakesOf

KAFKA = "org.apache.kafka.common.config.provider."
PROVIDERS = (
    "config.providers = file, env, dir\n"
    f"config.providers.file.class = {KAFKA}FileConfigProvider\n"
    f"config.providers.env.class = {KAFKA}EnvVarConfigProvider\n"
    f"config.providers.dir.class = {KAFKA}DirectoryConfigProvider\n"
)
"""Lines 5 to 8; what follows begins at line 9."""


def rack(load_text: LoadText, reference: str, environment: dict[str, str] | None = None, more: str = "") -> str:
    loaded = load_text(f"{PROVIDERS}A.consumer.client.rack = {reference}\n{more}", environment=environment)
    return loaded.flow(A_TO_B).clients.source_consumer["client.rack"]


def test_config_provider_resolves_its_reference(load_text: LoadText, tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("db.rack = from-file\n")
    (tmp_path / "rack").write_text("from-folder")
    assert rack(load_text, f"${{file:{tmp_path}/secrets.properties:db.rack}}") == "from-file"
    assert rack(load_text, f"${{dir:{tmp_path}:rack}}") == "from-folder"
    assert rack(load_text, "${env:RACK}", {"RACK": "from-environment"}) == "from-environment"


def test_config_provider_reads_a_properties_file_as_utf8(
    load_text: LoadText, mistakes_of: MistakesOf, tmp_path: Path
) -> None:
    """Kafka's FileConfigProvider opens the file with a reader of UTF-8, unlike mm2.properties itself."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("rack = p\u00e4\u20acss\\u00df\n", encoding="utf-8")
    assert rack(load_text, f"${{file:{secrets}:rack}}") == "p\u00e4\u20acss\u00df"
    secrets.write_bytes("rack = p\u00e4ss\n".encode("iso-8859-1"))
    (mistake,) = mistakes_of(f"{PROVIDERS}A.consumer.client.rack = ${{file:{secrets}:rack}}\n")
    assert mistake.endswith(f"{secrets} is no text in UTF-8")


def test_config_provider_references_join_into_one_value_resolved_once(load_text: LoadText) -> None:
    assert rack(load_text, "eu-${env:N}${env:M}-x", {"N": "1", "M": "${env:N}"}) == "eu-1${env:N}-x"


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("${env:NONE}", "env': the environment variable NONE is not set"),
        ("${file:/nowhere/s.properties:k}", "file': /nowhere/s.properties cannot be read: No such file or directory"),
        ("${dir:/nowhere:k}", "dir': /nowhere/k cannot be read: No such file or directory"),
        ("${dir:/etc:../etc/passwd}", "dir': '../etc/passwd' is no name of a file"),
    ],
)
def test_a_reference_that_cannot_be_resolved_names_key_and_provider(
    mistakes_of: MistakesOf, reference: str, sentence: str
) -> None:
    (mistake,) = mistakes_of(f"{PROVIDERS}A.consumer.client.rack = {reference}\n")
    place = "9 A.consumer.client.rack"
    assert mistake.startswith(f"{place}: {reference} cannot be resolved by the config provider '{sentence}")


def test_reference_to_an_unknown_provider_names_the_known_ones(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(PROVIDERS + "A.consumer.client.rack = ${vault:a:b}\n")
    assert (
        "asks for the config provider 'vault', but known are file, env, dir: write config.providers = file" in mistake
    )


def test_a_missing_key_of_a_file_is_named_and_nothing_else_of_it(mistakes_of: MistakesOf, tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("other = top-secret\n")
    (mistake,) = mistakes_of(f"{PROVIDERS}A.consumer.client.rack = ${{file:{tmp_path}/s.properties:k}}\n")
    assert mistake.endswith("s.properties has no key 'k'")
    assert "top-secret" not in mistake


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            "A.consumer.client.rack = ${env:RACK}\n",
            "5 A.consumer.client.rack: ${env:RACK} asks for the config provider 'env', but the file has no "
            "config.providers: write config.providers = env, and config.providers.env.class = "
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        ),
        (
            "config.providers = vault\n",
            "5 config.providers: names 'vault', which has no class: add config.providers.vault.class=",
        ),
        (
            "config.providers = v\nconfig.providers.v.class = com.example.Vault\n",
            "6 config.providers.v.class: is 'com.example.Vault', which cannot run here: known are",
        ),
    ],
)
def test_config_provider_that_is_not_there_is_refused(mistakes_of: MistakesOf, lines: str, sentence: str) -> None:
    (mistake,) = mistakes_of(lines)
    assert mistake.startswith(sentence)


def test_config_provider_is_restricted_to_its_allowed_paths(
    load_text: LoadText, mistakes_of: MistakesOf, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rack").write_text("inside")
    (tmp_path / "rack").write_text("outside")
    allowed = f"config.providers.dir.param.allowed.paths = {tmp_path}/in\n"
    assert rack(load_text, f"${{dir:{tmp_path}/in:rack}}", more=allowed) == "inside"
    (mistake,) = mistakes_of(f"{PROVIDERS}{allowed}A.consumer.client.rack = ${{dir:{tmp_path}/in/..:rack}}\n")
    assert "is outside of allowed.paths" in mistake
    pattern = "config.providers.env.param.allowlist.pattern = KAFKA_.*\n"
    (mistake,) = mistakes_of(
        f"{PROVIDERS}{pattern}A.consumer.client.rack = ${{env:HOME}}\n", environment={"HOME": "/h"}
    )
    assert "allowlist.pattern does not allow the environment variable HOME" in mistake


def test_a_reference_is_resolved_before_its_value_is_judged(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    assert (
        load_text(PROVIDERS + "tasks.max = ${env:N}\n", environment={"N": "3"}).flow(A_TO_B).data_plane.tasks_max == 3
    )


@pytest.mark.parametrize(
    "key", ["tasks.max", "topics.exclude", "transforms", "A.security.protocol", "A.producer.retry.backoff.ms"]
)
def test_config_provider_value_is_not_shown_under_any_key(mistakes_of: MistakesOf, key: str) -> None:
    mistakes = mistakes_of(PROVIDERS + f"{key} = ${{env:N}}\n", environment={"N": "hush(,hush("})
    assert mistakes == [
        f"9 {key}: has a value that does not fit; it comes from a config provider and is not shown: "
        "check it in its file"
    ]


STRIMZI = "io.strimzi.kafka."


@pytest.mark.parametrize("kind", ["KubernetesSecretConfigProvider", "KubernetesConfigMapConfigProvider"])
def test_strimzi_providers_read_mounted_files(load_text: LoadText, tmp_path: Path, kind: str) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "rack").write_text("eu-1\n")
    lines = (
        f"config.providers = secrets\nconfig.providers.secrets.class = {STRIMZI}{kind}\n"
        "A.consumer.client.rack = ${secrets:my-namespace/db:rack}\n"
    )
    environment = {SECRETS_VARIABLE: str(tmp_path)}
    consumer = load_text(lines, environment=environment).flow(A_TO_B).clients.source_consumer
    assert consumer["client.rack"] == "eu-1"


def test_secrets_folder_has_a_default(mistakes_of: MistakesOf) -> None:
    lines = (
        f"config.providers = secrets\nconfig.providers.secrets.class = {SECRETS_CLASS}\n"
        "A.consumer.client.rack = ${secrets:ns/db:rack}\n"
    )
    (mistake,) = mistakes_of(lines)
    assert "there is no secret 'db' (for its key 'rack'): /opt/lockstep/secrets/db is no folder" in mistake


def test_the_older_name_of_strimzis_environment_provider(load_text: LoadText) -> None:
    lines = (
        f"config.providers = env\nconfig.providers.env.class = {STRIMZI}EnvVarConfigProvider\ntasks.max=${{env:N}}\n"
    )
    assert load_text(lines, environment={"N": "3"}).flow(A_TO_B).data_plane.tasks_max == 3


def mounted(folder: Path) -> Provider:
    lines = {PROVIDERS_KEY: "secrets", f"{PROVIDERS_KEY}.secrets.class": SECRETS_CLASS}
    top = {key: Entry(key, value) for key, value in lines.items()}
    providers, problems = read_providers(top, folder, {SECRETS_VARIABLE: str(folder)})
    assert not problems
    return providers["secrets"]


def test_the_versions_of_a_mounted_secret_are_no_keys_of_it(tmp_path: Path) -> None:
    """Kubernetes mounts `..data` as a link to a folder of the newest version, and each key as a link into it."""
    version = tmp_path / "ca" / "..2026_01_01"
    version.mkdir(parents=True)
    (version / "ca.crt").write_text("one\n")
    (tmp_path / "ca" / "..data").symlink_to(version.name)
    (tmp_path / "ca" / "ca.crt").symlink_to("..data/ca.crt")
    read = mounted(tmp_path)
    folder = tmp_path / "ca"
    assert read("ns/ca", "ca.crt") == ("one", (folder / "ca.crt",))
    assert read("ca", "*") == ("one", (folder / "ca.crt", folder))


@pytest.mark.parametrize(
    ("path", "key"), [("a/b/c", "k"), ("../a", "k"), ("a", "../k"), ("a", ""), ("", "k"), ("a", "b/*"), ("a\0b", "k")]
)
def test_a_secret_and_its_key_are_plain_names(tmp_path: Path, path: str, key: str) -> None:
    with pytest.raises(Unresolvable, match="is no name of a secret"):
        mounted(tmp_path)(path, key)


class TestWhatIsNoFile:
    """A device would be read for ever, and who opens a pipe waits for its writer."""

    @pytest.mark.parametrize(
        ("reference", "cause"),
        [
            ("${file:/dev/zero:x}", "/dev/zero cannot be read: it is a device or a pipe, no file"),
            ("${dir:/dev:zero}", "/dev/zero cannot be read: it is a device or a pipe, no file"),
            ("${file:/:x}", "/ cannot be read: it is a folder"),
            ("${file:a\\u0000b:x}", "its name holds a character that no name of a file may hold"),
        ],
    )
    def test_config_provider_bad_reference_is_refused(
        self, mistakes_of: MistakesOf, reference: str, cause: str
    ) -> None:
        (mistake,) = mistakes_of(PROVIDERS + f"topics = {reference}\n")
        assert cause in mistake

    def test_config_provider_refuses_a_pipe_and_a_file_that_is_too_large(
        self, mistakes_of: MistakesOf, tmp_path: Path
    ) -> None:
        os.mkfifo(tmp_path / "pipe")
        with (tmp_path / "large").open("wb") as large:
            large.truncate(LARGEST + 1)
        (mistake,) = mistakes_of(PROVIDERS + f"topics = ${{file:{tmp_path}/pipe:x}}\n")
        assert "it is a device or a pipe, no file" in mistake
        (mistake,) = mistakes_of(PROVIDERS + f"topics = ${{file:{tmp_path}/large:x}}\n")
        assert "it is larger than 16 MiB" in mistake

    def test_config_provider_refuses_a_pipe_as_configuration(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "mm2.properties")
        with pytest.raises(ConfigurationError, match="it is a device or a pipe, no file"):
            load(tmp_path / "mm2.properties", {})


def test_config_provider_parses_unclosed_references_in_linear_time(load_text: LoadText) -> None:
    beginnings = "${" * 50_000 + "${a:" * 50_000
    assert load_text(f"A->B.client.id = {beginnings}\n").unused


def test_the_allowlist_is_a_pattern_of_javas(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    text = f"config.providers=env\nconfig.providers.env.class={KAFKA}EnvVarConfigProvider\n"
    text += "config.providers.env.param.allowlist.pattern=\\\\p{Upper}+\ntopics=${env:TOPICS}\n"
    loaded = load_text(text, environment={"TOPICS": "orders"})
    assert loaded.flows[0].replicates("orders")
    mistakes = mistakes_of(text.replace("\\\\p{Upper}+", "\\\\p{Foo}"), environment={"TOPICS": "orders"})
    assert any("allowlist.pattern" in mistake for mistake in mistakes)
