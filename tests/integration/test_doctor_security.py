"""`lockstep doctor` and TLS, SASL and tokens: each step that can fail is the one that is named."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import GuardedPair
from tests.support.certificates import Authority
from tests.support.doctor_runs import DoctorRun, run_doctor
from tests.support.secured import USER, Secured, SecuredBroker
from tests.support.services import two_cluster_file

NOT_OK = ("LD301", "LD403", "LD406", "LD407")
"""Certificates of tests end soon, and `localhost` may have an IPv6 address on which no broker listens."""

WAY = ("names", "connection", "tls", "login", "cluster")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = Secured.made(tmp_path_factory.mktemp("doctor-secured"))
    with secured.tokens, SecuredBroker("A", secured) as made:
        made.add_users()
        yield made


def examined(folder: Path, broker: SecuredBroker, lines: Sequence[str], code: int) -> DoctorRun:
    """The way to the source `s`, which these lines describe; the target is the open listener."""
    file = two_cluster_file(folder, ("s", "localhost:1"), ("t", broker.bootstrap), "s->t.enabled = true", "topics = x")
    own = [line for line in file.read_text().splitlines() if "localhost:1" not in line]
    file.write_text("\n".join([*own, *lines, ""]))
    categories = [part for name in WAY for part in ("--category", name)]
    return run_doctor(file, *categories, code=code)


@pytest.mark.parametrize(
    "how",
    [
        "TLS",
        pytest.param("MTLS", marks=pytest.mark.long),
        "PLAIN",
        "SCRAM-SHA-256",
        pytest.param("OAUTHBEARER", marks=pytest.mark.long),
    ],
)
def test_each_login_is_let_in_and_each_certificate_dated(tmp_path: Path, broker: SecuredBroker, how: str) -> None:
    run = examined(tmp_path, broker, broker.lines(how, "s"), 1)  # for one cluster has two aliases
    assert run.not_ok().keys() - {("LD605", "s->t")} <= {(code, "s") for code in NOT_OK}
    assert run.one("LD504", "s")["result"] == "ok"
    if how != "SCRAM-SHA-256":
        # Certificates of tests end in 30 days, less than a whole one by now.
        assert run.one("LD403", "s")["result"] == "warning"
        assert run.one("LD403", "s")["detail"].startswith("29 days left: CN=localhost at localhost:")
        assert run.one("LD404", "s")["result"] == "ok"
        assert run.one("LD405", "s")["detail"] == "localhost"
    if how == "MTLS":
        assert run.one("LD406", "s")["result"] == "warning"
        assert f"brokers know us as User:CN={USER}" in run.one("LD504", "s")["detail"]


def test_expired_certificate_is_dated_and_fatal(tmp_path: Path, broker: SecuredBroker) -> None:
    run = examined(tmp_path, broker, broker.lines("TLS", "s", listener="EXPIRED"), 1)
    finding = run.one("LD403", "s")
    assert (finding["result"], finding["detail"].partition(":")[0]) == ("failed", "ended 1 day ago")
    assert run.results("s")["LD504"] == "unknown"


def test_certificate_for_another_name_shows_its_names(tmp_path: Path, broker: SecuredBroker) -> None:
    run = examined(tmp_path, broker, broker.lines("TLS", "s", listener="ELSEWHERE"), 1)
    assert run.one("LD404", "s")["result"] == "ok"
    finding = run.one("LD405", "s")
    assert finding["result"] == "failed"
    assert finding["detail"].startswith("localhost is not among elsewhere.example (localhost:")


def test_authority_that_is_not_trusted_is_a_fault_of_the_chain(tmp_path: Path, broker: SecuredBroker) -> None:
    (tmp_path / "other.pem").write_text(Authority("another").pem)
    lines = [*broker.lines("TLS", "s"), f"s.ssl.truststore.location = {tmp_path / 'other.pem'}"]
    run = examined(tmp_path, broker, lines, 1)
    assert run.one("LD404", "s")["result"] == "failed"
    assert "self-signed certificate in certificate chain" in run.one("LD404", "s")["detail"]


def test_tls_to_a_plain_port_is_no_tls(tmp_path: Path, broker: SecuredBroker) -> None:
    lines = [*broker.lines("TLS", "s"), f"s.bootstrap.servers = {broker.bootstrap}"]
    run = examined(tmp_path, broker, lines, 1)
    finding = run.one("LD402", "s")
    assert finding["result"] == "failed"
    assert f"the broker at {broker.bootstrap} speaks no TLS on this port" in finding["detail"]


def test_plain_text_to_a_tls_port_is_no_broker(tmp_path: Path, broker: SecuredBroker) -> None:
    run = examined(tmp_path, broker, [f"s.bootstrap.servers = {broker.address('TLS')}"], 1)
    finding = run.one("LD501", "s")
    assert finding["result"] == "failed"
    assert run.results("s")["LD601"] == "unknown"


def test_missing_client_certificate_is_the_brokers_complaint(tmp_path: Path, broker: SecuredBroker) -> None:
    run = examined(tmp_path, broker, broker.lines("TLS", "s", listener="MTLS"), 1)
    assert run.one("LD404", "s")["result"] == "ok"
    assert "wants a client certificate, and none is configured" in run.one("LD501", "s")["detail"]


def test_wrong_password_is_the_step_of_the_credentials(tmp_path: Path, broker: SecuredBroker) -> None:
    run = examined(tmp_path, broker, broker.lines("SCRAM-SHA-256", "s", password="wrong"), 1)
    assert run.one("LD503", "s")["result"] == "ok"
    finding = run.one("LD504", "s")
    assert finding["result"] == "failed"
    assert f"the broker refuses the login of user {USER} (SCRAM-SHA-256)" in finding["detail"]


@pytest.mark.long
def test_token_server_that_is_away_is_the_step_of_the_token(tmp_path: Path, broker: SecuredBroker) -> None:
    lines = [*broker.lines("OAUTHBEARER", "s"), "s.sasl.oauthbearer.token.endpoint.url = https://localhost:1/token"]
    run = examined(tmp_path, broker, lines, 1)
    assert run.one("LD502", "s")["result"] == "failed"
    assert "https://localhost:1/token" in run.one("LD502", "s")["detail"]


@pytest.mark.long
def test_mechanism_that_a_broker_lacks_is_named_with_its_own(
    tmp_path: Path, broker: SecuredBroker, pair: GuardedPair
) -> None:
    """The guarded broker has PLAIN only."""
    lines = [*broker.lines("SCRAM-SHA-256", "s"), f"s.bootstrap.servers = {pair.a.guarded}"]
    run = examined(tmp_path, broker, lines, 1)
    finding = run.one("LD503", "s")
    assert (finding["result"], finding["detail"]) == ("failed", "SCRAM-SHA-256 is not offered; the broker offers PLAIN")
