"""Addresses at which no broker of the file's protocol answers: each command says so in one sentence, within seconds."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_kafka.admin.address_probe import QUESTION
from tests.support.broker import started
from tests.support.certificates import Authority
from tests.support.commands import lockstep
from tests.support.secured import Secured, SecuredBroker
from tests.support.services import ServiceProcess

WITHIN_S = 10.0
"""Seconds that a command may take, beside what its process needs to begin."""
BEGINS_S = 10.0
"""Seconds in which Python may begin on a machine that is shared."""

SETTLED_S = 5.0
"""Seconds in which several attempts fail: for what must not be said again."""

Speak = Callable[[socket.socket], None]


def http(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def ssh(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    connection.recv(4096)
    connection.sendall(b"Invalid SSH identification string.\r\n")


def echo(connection: socket.socket) -> None:
    while data := connection.recv(4096):
        connection.sendall(data)


def zeros(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(bytes(1000))
    silence(connection)


def cut(connection: socket.socket) -> None:
    """Close the connection after 100 bytes of an answer with 60 requests, as a proxy may."""
    number = connection.recv(4096)[8:12]
    body = struct.pack(">hi", 0, 60) + b"".join(struct.pack(">hhh", key, 0, 1) for key in range(60))
    connection.sendall((struct.pack(">i", 4 + len(body)) + number + body)[:100])


def as_broker(connection: socket.socket) -> None:
    """Answer the first request as a broker that knows no requests."""
    connection.recv(len(QUESTION))
    body = QUESTION[8:12] + struct.pack(">hi", 0, 0)
    connection.sendall(struct.pack(">i", len(body)) + body)
    silence(connection)


def silence(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def close(connection: socket.socket) -> None:
    connection.recv(4096)


@contextmanager
def serving(speak: Speak, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server that has each connection in a thread of its own."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if context is None:
                speak(connection)
            else:
                with context.wrap_socket(connection, server_side=True) as secured:
                    speak(secured)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A server, whether it and we speak TLS, and the words of what is wrong."""

    name: str
    speak: Speak
    words: str
    has_tls: bool = False
    uses_tls: bool = False


NO_KAFKA, NO_TLS = "speaks no Kafka (", "speaks no TLS on this port: check security.protocol"
HAS_TLS = "speaks TLS, and security.protocol has none: write SSL or SASL_SSL"
HTTP = "an HTTP server answers at "
CUT = "closes the connection in the middle of an answer: check the proxy"
SILENT = "accepts the connection and says nothing within"
CASES = (
    Foreign("http", http, HTTP),
    Foreign("http to tls", http, HTTP, uses_tls=True),
    Foreign("https", http, HAS_TLS, has_tls=True),
    Foreign("https to tls", http, HTTP, has_tls=True, uses_tls=True),
    Foreign("ssh", ssh, f"{NO_KAFKA}'SSH-2.0-OpenSSH"),
    Foreign("ssh to tls", ssh, f"{NO_KAFKA}'SSH-2.0-OpenSSH", uses_tls=True),
    Foreign("echo", echo, NO_KAFKA),
    Foreign("echo to tls", echo, NO_KAFKA, uses_tls=True),
    Foreign("zeros", zeros, NO_KAFKA),
    Foreign("cut", cut, CUT),
    Foreign("cut behind tls", cut, CUT, has_tls=True, uses_tls=True),
    Foreign("broker with tls", as_broker, HAS_TLS, has_tls=True),
    Foreign("broker without tls", as_broker, NO_TLS, uses_tls=True),
    Foreign("closes", close, "closes it without an answer"),
    Foreign("closes to tls", close, "closes it during the TLS handshake", uses_tls=True),
    Foreign("silent", silence, SILENT),
    Foreign("silent to tls", silence, SILENT, uses_tls=True),
    Foreign("silent behind tls", silence, SILENT, has_tls=True, uses_tls=True),
)
COMMANDS = {
    "plan": ((), 3),
    "status": ((), 3),
    "doctor": (("--category", "tls", "--category", "login"), 1),
}
IN_TLS = "answers no TLS handshake within"
"""What doctor says of a port that is silent in the handshake."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    folder = tmp_path_factory.mktemp("foreign")
    made = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server("127.0.0.1").pem(folder / "server.pem"))
    trusted = folder / "authority.pem"
    trusted.write_text(made.pem)
    return context, trusted


def write_file(folder: Path, port: int, trusted: Path | None) -> Path:
    lines = ["clusters = A, B", "A->B.enabled = true"]
    for alias in "AB":
        lines.append(f"{alias}.bootstrap.servers = 127.0.0.1:{port}")
        if trusted is not None:
            lines += [f"{alias}.security.protocol = SSL", f"{alias}.ssl.truststore.type = PEM"]
            lines.append(f"{alias}.ssl.truststore.location = {trusted}")
    file = folder / "mm2.properties"
    file.write_text("\n".join([*lines, ""]))
    return file


@contextmanager
def case_file(case: Foreign, folder: Path, authority: tuple[ssl.SSLContext, Path]) -> Iterator[Path]:
    context, trusted = authority
    with serving(case.speak, context if case.has_tls else None) as port:
        yield write_file(folder, port, trusted if case.uses_tls else None)


def printed_by(command: str, file: Path) -> str:
    """Return what a command prints, which ends soon and with its code."""
    arguments, code = COMMANDS[command]
    began = time.monotonic()
    printed = lockstep(command, file, *arguments, code=code, within=60.0)
    assert time.monotonic() - began < WITHIN_S + BEGINS_S, printed
    return printed


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command_names_what_answers_at_once(
    case: Foreign, command: str, tmp_path: Path, authority: tuple[ssl.SSLContext, Path]
) -> None:
    with case_file(case, tmp_path, authority) as file:
        printed = printed_by(command, file)
    is_silent_in_doctor = command == "doctor" and case.name == "silent to tls"
    assert (IN_TLS if is_silent_in_doctor else case.words) in printed, printed
    if command != "doctor":
        assert len(printed.strip().splitlines()) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("http", "ssh to tls", "silent")], ids=lambda case: case.name
)
def test_service_says_once_what_answers(case: Foreign, tmp_path: Path, authority: tuple[ssl.SSLContext, Path]) -> None:
    with case_file(case, tmp_path, authority) as file, ServiceProcess("lockstep_heartbeat", file, "A->B") as process:
        line = process.hear("cluster unreachable", within=WITHIN_S + 2 * BEGINS_S)
        assert case.words in line["text"]
        time.sleep(SETTLED_S)
        assert process.has_said_each_cause_once()
        assert process.running


@dataclass(frozen=True, slots=True)
class WrongLogin:
    """A listener, a client of another security protocol, and the words of what is wrong."""

    name: str
    listener: str
    protocol: str
    words: str
    mechanism: str = ""


WANTS = "wants a SASL login, and security.protocol has none: write "
WRONG_LOGINS = (
    WrongLogin("no login", "SASL", "PLAINTEXT", WANTS + "SASL_PLAINTEXT"),
    WrongLogin("no login over tls", "SASLTLS", "SSL", WANTS + "SASL_SSL"),
    WrongLogin("no certificate", "MTLS", "SSL", "wants a client certificate, and none is configured"),
    WrongLogin("login", "PLAINTEXT", "SASL_PLAINTEXT", "takes no login on this port: check sec", "PLAIN"),
    WrongLogin("login over tls", "TLS", "SASL_SSL", "takes no login on this port: check sec", "SCRAM-SHA-512"),
)
"""Ports of a real broker, reached by a client whose login is not the port's."""


@pytest.fixture(scope="module")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    broker = SecuredBroker("A", Secured.made(tmp_path_factory.mktemp("secured")))
    with started(broker):
        yield broker


def wrong_login_file(case: WrongLogin, broker: SecuredBroker, folder: Path) -> tuple[Path, str]:
    """Return the file of a case, and the address in it."""
    has_tls = case.protocol.endswith("SSL")
    settings = broker.properties(case.mechanism or "TLS", listener="SASLTLS" if has_tls else "SASL")
    address = broker.bootstrap if case.listener == "PLAINTEXT" else broker.address(case.listener)
    settings |= {"bootstrap.servers": address, "security.protocol": case.protocol}
    lines = [f"{alias}.{key} = {value}" for alias in "AB" for key, value in settings.items()]
    file = folder / "mm2.properties"
    file.write_text("\n".join(["clusters = A, B", "A->B.enabled = true", *lines, ""]).replace("\\", "\\\\"))
    return file, address


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case is WRONG_LOGINS[0] else [pytest.mark.long])
        for case in WRONG_LOGINS
    ],
)
def test_port_with_another_login_is_named_by_each_command(
    case: WrongLogin, tmp_path: Path, secured_broker: SecuredBroker
) -> None:
    file, address = wrong_login_file(case, secured_broker, tmp_path)
    for command in COMMANDS:
        printed = printed_by(command, file)
        assert f"the broker at {address} {case.words}" in printed, printed
        assert "security.protocol" in printed
        if command == "doctor":
            assert "✗ LD501 A: " in printed
        else:
            (sentence,) = printed.strip().splitlines()
            assert f" at {address} cannot be reached: the broker at " in sentence


def test_service_names_a_port_that_wants_a_login(tmp_path: Path, secured_broker: SecuredBroker) -> None:
    file, address = wrong_login_file(WRONG_LOGINS[0], secured_broker, tmp_path)
    with ServiceProcess("lockstep_heartbeat", file, "A->B") as process:
        line = process.hear("cluster unreachable", within=WITHIN_S + 2 * BEGINS_S)
        assert f"the broker at {address} {WRONG_LOGINS[0].words}" in line["text"]
        time.sleep(SETTLED_S)
        assert process.has_said_each_cause_once()
