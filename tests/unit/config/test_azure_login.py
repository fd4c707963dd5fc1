"""Azure's login handlers: which credential is asked, for which scope, and what is said if there is none."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.identity import (
    CertificateCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from lockstep_config.clients.azure import CONDUKTOR_HANDLER, EXAMPLES, SPRING_HANDLERS, AzureCredential, AzureSettings
from lockstep_config.clients.azure_tokens import azure_token, make_credential
from lockstep_config.clients.oauth import OAUTHBEARER_MODULE
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.token_source import TokenSource, TokenUnavailable
from lockstep_config.keys.client_keys import Untranslatable
from lockstep_state.names import Flow
from tests.support.managed_identity import ManagedIdentity
from tests.unit.config.conftest import LoadText, MistakesOf

SCOPE = "https://orders.servicebus.windows.net/.default"
SPRINGS = SPRING_HANDLERS[0]


def properties(
    handler: str = SPRINGS, options: str = "", servers: str = "orders.servicebus.windows.net:9093"
) -> dict[str, str]:
    return {
        "bootstrap.servers": servers,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {options};",
    }


def settings(handler: str = SPRINGS, options: str = "") -> AzureSettings:
    tokens = read_login(properties(handler, options)).tokens
    assert tokens is not None
    assert isinstance(tokens.cloud, AzureSettings)
    return tokens.cloud


@pytest.mark.parametrize("handler", [*SPRING_HANDLERS, CONDUKTOR_HANDLER, *EXAMPLES])
def test_azure_handler_alone_asks_the_chain_for_the_namespace(handler: str) -> None:
    assert settings(handler) == AzureSettings(scope=SCOPE)


@pytest.mark.parametrize(
    ("handler", "options", "expected"),
    [
        (
            SPRINGS,
            'azure.credential.managed-identity-enabled="true" azure.credential.client-id="c"',
            AzureSettings(scope=SCOPE, credential=AzureCredential.MANAGED_IDENTITY, client_id="c"),
        ),
        (
            SPRINGS,
            'azure.profile.tenant-id="t" azure.credential.client-id="c" azure.credential.client-secret="s"',
            AzureSettings(
                scope=SCOPE, credential=AzureCredential.CLIENT_SECRET, tenant_id="t", client_id="c", client_secret="s"
            ),
        ),
        (SPRINGS, 'azure.credential.client-id="c"', AzureSettings(scope=SCOPE, client_id="c")),
        (
            SPRINGS,
            'azure.configured="true" azure.profile.cloud-type="AZURE_US_GOVERNMENT"',
            AzureSettings(scope=SCOPE, authority="https://login.microsoftonline.us"),
        ),
        (
            CONDUKTOR_HANDLER,
            'azureAuthType="clientcertificate" clientId="c" tenantId="t" certificate="/k.pem" certificatePass="p" scope="api://x"',
            AzureSettings(
                scope="api://x",
                credential=AzureCredential.CERTIFICATE,
                tenant_id="t",
                client_id="c",
                certificate="/k.pem",
                certificate_password="p",
            ),
        ),
        (
            CONDUKTOR_HANDLER,
            f'azureAuthType="workload" scope="{SCOPE}"',
            AzureSettings(scope=SCOPE, credential=AzureCredential.WORKLOAD),
        ),
        (
            CONDUKTOR_HANDLER,
            'azureAuthType="environment"',
            AzureSettings(scope=SCOPE, credential=AzureCredential.ENVIRONMENT),
        ),
    ],
)
def test_azure_options_choose_the_credential(handler: str, options: str, expected: AzureSettings) -> None:
    assert settings(handler, options) == expected


@pytest.mark.parametrize(
    ("handler", "options", "words"),
    [
        (CONDUKTOR_HANDLER, 'azureAuthType="password"', "known are environment, workload and clientcertificate"),
        (
            CONDUKTOR_HANDLER,
            'azureAuthType="clientcertificate"',
            'has azureAuthType="clientcertificate" and no certific',
        ),
        (SPRINGS, 'azure.credential.client-secret="s"', "no id of the tenant"),
        (SPRINGS, 'azure.profile.tenant-id="t" azure.credential.client-secret="s"', "no id of the client"),
        (SPRINGS, 'azure.profile.cloud-type="MARS"', "known are AZURE, AZURE_CHINA, AZURE_US_GOVERNMENT"),
        (SPRINGS, 'azure.credential.clientid="c"', "has azure.credential.clientid, which Azure's login does not know"),
        (CONDUKTOR_HANDLER, 'tenantid="t"', "has tenantid, which Azure's login does not know: did you mean tenantId"),
        (SPRINGS, 'azure.credential.username="ada"', "retired logins with a user's password"),
        (EXAMPLES[0], 'clientId="c"', "no class of Microsoft's examples reads"),
    ],
)
def test_azure_options_that_cannot_be_used_are_refused(handler: str, options: str, words: str) -> None:
    with pytest.raises(Untranslatable, match=words):
        read_login(properties(handler, options))


@pytest.mark.parametrize("handler", EXAMPLES)
def test_handler_of_an_example_is_refused_for_another_broker(handler: str) -> None:
    with pytest.raises(Untranslatable, match="Java classes cannot run here"):
        read_login(properties(handler, servers="kafka.example.org:9093"))


@pytest.mark.parametrize(
    "servers",
    ["n.servicebus.usgovcloudapi.net:9093", "n.servicebus.chinacloudapi.cn:9093", "N.ServiceBus.Windows.net:9093"],
)
def test_event_hubs_of_each_cloud_are_known(servers: str) -> None:
    assert read_login(properties(EXAMPLES[0], servers=servers)).tokens is not None


def test_secrets_of_azure_are_in_no_representation() -> None:
    options = 'azure.profile.tenant-id="t" azure.credential.client-id="c" azure.credential.client-secret="hush"'
    assert "hush" not in repr(settings(options=options))


@pytest.fixture
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "USERNAME", "PASSWORD", "CLIENT_CERTIFICATE_PATH"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    for name in ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"):
        monkeypatch.delenv(name, raising=False)
    for name in ("MSI_ENDPOINT", "MSI_SECRET", "IMDS_ENDPOINT", "IDENTITY_SERVER_THUMBPRINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PATH", "/nonexistent")  # no command line of Azure's is asked


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch, nothing_of_this_machine: None) -> Iterator[ManagedIdentity]:
    with ManagedIdentity(lambda: "a.b.c") as served:
        for name, text in served.environment.items():
            monkeypatch.setenv(name, text)
        yield served


MANAGED = 'azure.credential.managed-identity-enabled="true"'


@pytest.mark.parametrize("options", [MANAGED, ""], ids=["managed identity", "chain"])
def test_azure_token_is_that_of_the_managed_identity(identity: ManagedIdentity, options: str) -> None:
    text, until = azure_token(settings(options=options))
    assert text == "a.b.c"
    assert 3500 < until - time.time() < 3700
    assert identity.asked[0]["resource"] == ["https://orders.servicebus.windows.net"]


def test_azure_refusal_is_one_line_with_its_words(identity: ManagedIdentity) -> None:
    identity.status = 400
    with pytest.raises(TokenUnavailable, match=r"Azure gave no token for https://orders\.servicebus") as caught:
        azure_token(settings(options=MANAGED))
    assert "by the credential managed-identity" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("nothing_of_this_machine")
def test_azure_login_without_credentials_names_what_to_set() -> None:
    with pytest.raises(TokenUnavailable, match="set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"):
        azure_token(settings(CONDUKTOR_HANDLER, 'azureAuthType="environment"'))
    with pytest.raises(TokenUnavailable, match="by the credential workload"):
        azure_token(settings(CONDUKTOR_HANDLER, 'azureAuthType="workload"'))


def rsa_certificate(file: Path) -> Path:
    """A key and its certificate, as Azure wants them: by RSA."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mirror")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    no_password = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password) + certificate
    )
    return file


def test_each_credential_is_that_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("TENANT_ID", "t"), ("CLIENT_ID", "c"), ("FEDERATED_TOKEN_FILE", "/token")):
        monkeypatch.setenv(f"AZURE_{name}", text)
    pem = rsa_certificate(tmp_path / "client.pem")
    kinds = {
        AzureCredential.DEFAULT: DefaultAzureCredential,
        AzureCredential.ENVIRONMENT: EnvironmentCredential,
        AzureCredential.WORKLOAD: WorkloadIdentityCredential,
        AzureCredential.MANAGED_IDENTITY: ManagedIdentityCredential,
        AzureCredential.CLIENT_SECRET: ClientSecretCredential,
        AzureCredential.CERTIFICATE: CertificateCredential,
    }
    assert kinds.keys() == set(AzureCredential)
    for credential, kind in kinds.items():
        azure = AzureSettings(
            scope=SCOPE, credential=credential, tenant_id="t", client_id="c", client_secret="s", certificate=str(pem)
        )
        assert type(make_credential(azure)) is kind


def test_azure_file_is_checked_and_names_the_extra(
    load_text: LoadText, mistakes_of: MistakesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "A.security.protocol = SASL_SSL\n" + "".join(f"A.{key} = {text}\n" for key, text in properties().items())
    assert load_text(lines).flow(Flow("A", "B")) is not None
    monkeypatch.setattr("lockstep_config.clients.cloud_login.find_spec", lambda _: None)
    (mistake,) = mistakes_of(lines)
    assert "package azure-identity is missing: install lockstep-kafka[azure]" in mistake
    tokens = read_login(properties()).tokens
    assert tokens is not None
    with pytest.raises(TokenUnavailable, match=r"lockstep-kafka\[azure\]"):
        TokenSource(tokens).token()
