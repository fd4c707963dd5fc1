"""Google's login handler: whose token, in which form, and what is said if there is none."""

import base64
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.compute_engine import _metadata

from lockstep_config.clients.google import GOOGLE_HANDLER, GoogleSettings
from lockstep_config.clients.google_tokens import google_token
from lockstep_config.clients.oauth import OAUTHBEARER_MODULE, TokenSettings
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.token_source import TokenSource, TokenUnavailable, shared_token_source
from lockstep_config.flow.client_settings import target_admin
from lockstep_config.keys.client_keys import Untranslatable

from .conftest import A_TO_B, LoadText, MistakesOf

BROKERS = "bootstrap.orders.europe-west3.managedkafka.example.cloud.goog:9092"
ACCOUNT = "mirror@example.iam.gserviceaccount.com"
PROPERTIES = {
    "bootstrap.servers": BROKERS,
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": GOOGLE_HANDLER,
    "sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
}
FILE = f"""
A.bootstrap.servers = {BROKERS}
A.security.protocol = SASL_SSL
A.sasl.mechanism = OAUTHBEARER
A.sasl.login.callback.handler.class = {GOOGLE_HANDLER}
A.sasl.jaas.config = {OAUTHBEARER_MODULE} required;
"""


class Google:
    """A token endpoint and a metadata server in one, as Google's are asked. `status` is its answer's."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.status = 200
        google = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                google.asked.append((self.path, parse_qs(form)))
                self.answer({"access_token": "ya29.of-a-file", "expires_in": 1800, "id_token": google.id_token})

            def do_GET(self) -> None:
                address = urlsplit(self.path)
                google.asked.append((address.path, parse_qs(address.query)))
                if address.path.endswith("/token"):
                    self.answer({"access_token": "ya29.of-an-instance", "expires_in": 900})
                elif address.path.endswith("/project-id"):
                    self.answer_text("example")
                else:
                    self.answer({"email": ACCOUNT, "scopes": [], "aliases": ["default"]})

            def answer(self, content: dict[str, Any]) -> None:
                self.answer_text(
                    json.dumps(content) if google.status == 200 else json.dumps({"error": "invalid_grant"})
                )

            def answer_text(self, text: str) -> None:
                self.send_response(google.status)
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/plain")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        claims = base64.urlsafe_b64encode(json.dumps({"email": "ada@example.org"}).encode()).decode().rstrip("=")
        self.id_token = f"{base64.urlsafe_b64encode(b'{}').decode()}.{claims}.c2ln"
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Google]:
    """The only Google that is to be asked: nothing of this machine counts."""
    served = Google()
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)  # the variables were read at the import
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield served
    served.server.shutdown()
    served.server.server_close()


@pytest.fixture
def key_file(google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account's key, whose tokens come from `google`."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path / "key.json"
    content = {"type": "service_account", "client_email": ACCOUNT, "private_key": pem.decode(), "project_id": "example"}
    file.write_text(json.dumps({**content, "token_uri": f"http://{google.address}/token"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    return file


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The parts of the token as Google's broker reads them."""
    header, claims, access = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    return json.loads(header), json.loads(claims), access.decode()


def tokens() -> TokenSettings:
    settings = read_login(PROPERTIES).tokens
    assert settings is not None
    return settings


def test_google_handler_of_a_file_is_read_as_it_is(load_text: LoadText) -> None:
    flow = load_text(FILE).flow(A_TO_B)
    assert flow is not None
    assert tokens().cloud == GoogleSettings()
    without_jaas = {key: value for key, value in PROPERTIES.items() if key != "sasl.jaas.config"}
    assert read_login(without_jaas) == read_login(PROPERTIES)


def test_google_option_that_would_do_nothing_is_refused() -> None:
    properties = PROPERTIES | {"sasl.jaas.config": f'{OAUTHBEARER_MODULE} required keyFile="k.json";'}
    with pytest.raises(Untranslatable, match="has keyFile, and Google's login has no options"):
        read_login(properties)


@pytest.mark.usefixtures("key_file")
def test_google_token_of_a_service_account_names_its_email(google: Google) -> None:
    began = time.time()
    text, until = google_token(GoogleSettings())
    header, claims, access = parts(text)
    assert header == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert access == "ya29.of-a-file"
    assert claims == {"exp": int(until), "iat": claims["iat"], "scope": "kafka", "sub": ACCOUNT}
    assert began - 1 <= claims["iat"] <= time.time()
    assert 1700 < until - began < 1900
    ((path, form),) = google.asked
    assert path == "/token"
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


def test_google_token_of_an_instance_names_its_account(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", google.address)
    monkeypatch.setattr(_metadata, "_GCE_DEFAULT_HOST", google.address)
    monkeypatch.setenv("GCE_METADATA_IP", google.address)
    _, claims, access = parts(google_token(GoogleSettings())[0])
    assert (claims["sub"], access) == (ACCOUNT, "ya29.of-an-instance")


@pytest.mark.filterwarnings("ignore:Your application has authenticated using end user credentials")
def test_google_token_of_a_person_names_the_email(
    google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "person.json"
    person = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    file.write_text(json.dumps(person))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"http://{google.address}/token")
    _, claims, _ = parts(google_token(GoogleSettings())[0])
    assert claims["sub"] == "ada@example.org"
    google.id_token = ""
    with pytest.raises(TokenUnavailable, match="name no account"):
        google_token(GoogleSettings())


@pytest.mark.usefixtures("google")
def test_google_login_without_credentials_names_what_to_set() -> None:
    with pytest.raises(TokenUnavailable, match="there are no application default credentials") as caught:
        TokenSource(tokens(), sleep=lambda _: None).token()
    assert "GOOGLE_APPLICATION_CREDENTIALS" in str(caught.value)


@pytest.mark.usefixtures("key_file")
def test_google_refusal_has_its_words(google: Google) -> None:
    google.status = 400
    with pytest.raises(TokenUnavailable, match=r"Google gave no token .*invalid_grant"):
        google_token(GoogleSettings())


@pytest.mark.parametrize("content", ["", "{}", '{"type": "service_account"}', "no JSON", None])
@pytest.mark.usefixtures("google")
def test_google_key_file_that_is_none_gives_no_token(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key.json"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(TokenUnavailable):
        google_token(GoogleSettings())


def test_google_server_that_is_away_gives_no_token(google: Google, key_file: Path) -> None:
    key_file.write_text(key_file.read_text().replace(google.address, "127.0.0.1:1"))
    with pytest.raises(TokenUnavailable, match="Google gave no token"):
        google_token(GoogleSettings())


@pytest.mark.usefixtures("key_file")
def test_google_token_reaches_librdkafka_once_for_all_clients(google: Google, load_text: LoadText) -> None:
    flow = load_text(FILE.replace("A.", "B.")).flow(A_TO_B)
    assert flow is not None
    source = shared_token_source(tokens())
    text, end, _, extensions = target_admin(flow)["oauth_cb"]("")
    assert parts(text)[1]["sub"] == ACCOUNT
    assert end > time.time()
    assert extensions == {}
    assert source.token().text == text
    assert len(google.asked) == 1
    assert read_login(PROPERTIES).principal_name() == ACCOUNT


def test_google_login_without_the_library_names_the_extra(
    mistakes_of: MistakesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_config.clients.cloud_login.find_spec", lambda _: None)
    (mistake,) = mistakes_of(FILE)
    assert "logs in with Google's credentials, for which the package google-auth is missing" in mistake
    with pytest.raises(TokenUnavailable, match=r"package google-auth is missing: install lockstep-kafka\[google\]"):
        TokenSource(TokenSettings(cloud=GoogleSettings())).token()
