"""Our connections log in by every mechanism, and show every kind of certificate."""

import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka.admin import AdminClient

from lockstep_config.clients.iam import AWS_MSK_IAM
from lockstep_config.clients.sasl import MECHANISMS, Credentials, librdkafka_login, read_login
from lockstep_config.flow.client_settings import wire_connection
from lockstep_config.text.keystores import load_trusted
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.sasl import SaslRefused, authenticate
from tests.support.certificates import Authority
from tests.support.iam_login import msk, signed_url
from tests.support.java_keystore import KEY, STORE, WRITTEN_BY_KEYTOOL
from tests.support.sasl_broker import Exchange, SaslBroker, bearer, plain, scram

USER, PASSWORD = "mirror,of=A", 'pass;"wörd'
TOKEN = "of-the-tests"
AWS_BROKER = "b-1.logins.ab12cd.c2.kafka.eu-west-3.amazonaws.com:9098"
"""Of a region that no other test names: tokens are kept by it."""


def by_password(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    quoted = password.replace('"', '\\"')
    jaas = f'{MECHANISMS[mechanism].login_module} required username="{USER}" password="{quoted}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def by_token(file: Path) -> dict[str, str]:
    jaas = f'{MECHANISMS["OAUTHBEARER"].login_module} required extension_pool="p";'
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas,
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }


def is_signed_by_aws(token: str, extensions: dict[str, str]) -> bool:
    url = urlsplit(signed_url(token))
    return url.netloc == "kafka.eu-west-3.amazonaws.com" and "X-Amz-Signature" in parse_qs(url.query)


@dataclass(frozen=True, slots=True)
class Login:
    """One mechanism: what the file says, which mechanism the broker is asked for, and what it does."""

    properties: Callable[[Path], dict[str, str]]
    asked_for: str
    exchange: Exchange


LOGINS = {
    "PLAIN": Login(lambda _: by_password("PLAIN"), "PLAIN", plain(USER, PASSWORD)),
    "SCRAM-SHA-256": Login(lambda _: by_password("SCRAM-SHA-256"), "SCRAM-SHA-256", scram("sha256", USER, PASSWORD)),
    "SCRAM-SHA-512": Login(lambda _: by_password("SCRAM-SHA-512"), "SCRAM-SHA-512", scram("sha512", USER, PASSWORD)),
    "OAUTHBEARER": Login(
        by_token, "OAUTHBEARER", bearer(lambda token, extensions: (token, extensions) == (TOKEN, {"pool": "p"}))
    ),
    AWS_MSK_IAM: Login(lambda _: msk(**{"bootstrap.servers": AWS_BROKER}), "OAUTHBEARER", bearer(is_signed_by_aws)),
}


async def opened(port: int, properties: dict[str, str]) -> Connection:
    settings = wire_connection(properties, "test", 10.0)
    return await Connection.open("localhost", port, settings)


@pytest.mark.parametrize("name", MECHANISMS)
async def test_every_mechanism_logs_in(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    file = tmp_path / "token"
    file.write_text(TOKEN)
    login = LOGINS[name]
    async with SaslBroker(login.asked_for, login.exchange).serving() as broker:
        properties = {"security.protocol": "SASL_PLAINTEXT", **login.properties(file)}
        connection = await opened(broker.port, properties)
        assert connection.offered == (login.asked_for,)
        await connection.close()


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_one_of_librdkafka(name: str, tmp_path: Path) -> None:
    properties = {"security.protocol": "SASL_PLAINTEXT", **LOGINS[name].properties(tmp_path / "token")}
    settings = librdkafka_login(read_login(properties))
    AdminClient({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", **settings})


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_wrong_password_is_refused_with_the_brokers_words(name: str) -> None:
    login = LOGINS[name]
    async with SaslBroker(login.asked_for, login.exchange).serving() as broker:
        properties = {"security.protocol": "SASL_PLAINTEXT", **by_password(name, "another")}
        with pytest.raises(BrokerUnreachable, match="not you"):
            await opened(broker.port, properties)


async def test_mechanism_that_the_broker_lacks_is_named_with_its_own() -> None:
    async with SaslBroker("PLAIN", plain(USER, PASSWORD)).serving() as broker:
        properties = {"security.protocol": "SASL_PLAINTEXT", **by_password("SCRAM-SHA-512")}
        with pytest.raises(BrokerUnreachable, match="does not offer SCRAM-SHA-512, but PLAIN"):
            await opened(broker.port, properties)


async def test_scram_broker_that_does_not_know_the_password_is_refused() -> None:
    exchange = scram("sha512", USER, PASSWORD, signed_with="another")
    async with SaslBroker("SCRAM-SHA-512", exchange).serving() as broker:
        properties = {"security.protocol": "SASL_PLAINTEXT", **by_password("SCRAM-SHA-512")}
        with pytest.raises(BrokerUnreachable, match="does not prove that it knows the password"):
            await opened(broker.port, properties)


async def test_scram_answer_that_cannot_be_read_is_a_refused_login() -> None:
    def garbled() -> Generator[bytes, bytes, bool]:
        _, _, nonce = (yield b"").rpartition(b"r=")
        yield b"r=" + nonce + b",s=&,i=many"
        return True

    async with SaslBroker("SCRAM-SHA-512", garbled).serving() as broker:
        properties = {"security.protocol": "SASL_PLAINTEXT", **by_password("SCRAM-SHA-512")}
        with pytest.raises(BrokerUnreachable, match="no answer of SCRAM"):
            await opened(broker.port, properties)


@pytest.mark.parametrize("iterations", [-1, 0, 4095, 1_000_001, 2**40])
async def test_scram_iterations_outside_the_limits_are_refused(iterations: int) -> None:
    sent: list[bytes] = []

    async def challenge(token: bytes) -> bytes:
        sent.append(token)
        return b"r=" + token.rpartition(b"r=")[2] + b"0,s=c2FsdA==,i=%d" % iterations

    with pytest.raises(SaslRefused, match="iterations of the hash"):
        await authenticate(Credentials("SCRAM-SHA-256", USER, PASSWORD), challenge)
    assert len(sent) == 1, "no proof was sent, which would tell a hash of the password"


async def test_mechanism_without_an_exchange_sends_nothing() -> None:
    async def unexpected(token: bytes) -> bytes:
        raise AssertionError(token)

    with pytest.raises(SaslRefused, match="no exchange for the mechanism DIGEST-MD5"):
        await authenticate(Credentials("DIGEST-MD5", USER, PASSWORD), unexpected)


async def test_name_that_cannot_be_encoded_is_an_unreachable_broker() -> None:
    with pytest.raises(BrokerUnreachable, match="label"):
        await Connection.open("x" * 64 + ".example", 9092, {"client_id": "test"})


async def test_scram_exchange_is_that_of_the_standards_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 7677, section 3."""
    monkeypatch.setattr("lockstep_kafka.wire.sasl.secrets.token_hex", lambda _: "rOprNGfwEbeRWgbNEkqO")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    answers = {
        "n,,n=user,r=rOprNGfwEbeRWgbNEkqO": f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=": (
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        ),
    }

    async def send(token: bytes) -> bytes:
        return answers.pop(token.decode()).encode()

    await authenticate(Credentials("SCRAM-SHA-256", "user", "pencil"), send)
    assert answers == {}


class Stores:
    """A client's key and certificate in a format, and who signed it."""

    def __init__(self, folder: Path, kind: str) -> None:
        authority = Authority()
        self.server = authority.server("localhost").pem(folder / "server.pem")
        trusted = folder / "trusted.pem"
        trusted.write_text(authority.pem)
        own, self.signers = authority.certify("own"), authority.pem
        self.properties = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(folder / "own"),
        }
        if kind == "PEM":
            own.pem(folder / "own")
            return
        self.properties["ssl.keystore.password"] = STORE
        if kind == "PKCS12":
            own.pkcs12(folder / "own", STORE)
            return
        (folder / "own").write_bytes(WRITTEN_BY_KEYTOOL)
        self.properties["ssl.key.password"] = KEY
        self.signers = load_trusted(str(folder / "own"), "JKS", STORE)


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
async def test_client_certificate_in_every_format_is_shown(kind: str, tmp_path: Path) -> None:
    stores = Stores(tmp_path, kind)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=stores.signers)
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(stores.server)
    async with SaslBroker().serving(context) as broker:
        connection = await opened(broker.port, stores.properties)
        await connection.close()
        assert broker.peer_names == ["own"]
        del stores.properties["ssl.keystore.location"], stores.properties["ssl.keystore.type"]
        with pytest.raises(BrokerUnreachable):
            await opened(broker.port, stores.properties)
