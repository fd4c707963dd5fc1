"""A TLS handshake with a port of this process, and what is said of the certificate there."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstep_config.clients.tls import TlsSettings
from lockstep_ops.doctor.checks.access_facts import TlsFault
from lockstep_ops.doctor.handshake import CLOSED, read_certificate
from tests.support.certificates import Authority, Certified

AUTHORITY = Authority()


@contextmanager
def served(folder: Path, certified: Certified) -> Iterator[int]:
    """The port; each connection is closed after its handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certified.pem(folder / "server.pem"))
    with closing_port(lambda plain: context.wrap_socket(plain, server_side=True).close()) as port:
        yield port


@contextmanager
def closing_port(handle: Callable[[socket.socket], object]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listening.accept()
                except OSError:  # it is closed: the test is over
                    return
                with plain:
                    try:
                        handle(plain)
                    except OSError:
                        continue  # the client did not like it, which is what is tested

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.mark.parametrize(
    ("certified", "fault"),
    [
        (AUTHORITY.server("localhost"), TlsFault.NONE),
        (AUTHORITY.server("localhost", days=(-20, -1)), TlsFault.EXPIRED),
        (AUTHORITY.server("localhost", days=(1, 20)), TlsFault.NOT_YET),
        (AUTHORITY.server("elsewhere.example"), TlsFault.NAME),
        (Authority("another").server("localhost"), TlsFault.CHAIN),
    ],
    ids=lambda value: str(value) if isinstance(value, TlsFault) else "",
)
def test_fault_of_a_certificate_is_found_and_its_end_read(
    tmp_path: Path, certified: Certified, fault: TlsFault
) -> None:
    with served(tmp_path, certified) as port:
        certificate = read_certificate("localhost", port, TlsSettings(trusted_pem=AUTHORITY.pem), 5.0)
    assert certificate.fault is fault
    assert certificate.ends_s == certified.certificate.not_valid_after_utc.timestamp()
    assert certificate.subject == certified.certificate.subject.rfc4514_string()


def test_address_in_a_certificate_is_among_its_names(tmp_path: Path) -> None:
    with served(tmp_path, AUTHORITY.server("broker.example", "10.0.0.7")) as port:
        certificate = read_certificate("localhost", port, TlsSettings(trusted_pem=AUTHORITY.pem), 5.0)
    assert certificate.names == ("broker.example", "10.0.0.7")


def test_port_that_closes_at_once_does_not_speak_tls() -> None:
    with closing_port(lambda plain: plain.recv(1)) as port:
        served = read_certificate("localhost", port, TlsSettings(trusted_pem=AUTHORITY.pem), 5.0)
    assert (served.fault, served.reason, served.ends_s) == (TlsFault.PROTOCOL, CLOSED, None)
