"""A TLS handshake with one port: whether it is accepted, and the certificate that was served in any case."""

import socket
import ssl

from lockstep_config.clients.tls import TlsSettings, ssl_context
from lockstep_kafka.common.auth_errors import refused_login
from lockstep_ops.doctor.checks.access_facts import ServedCertificate, TlsFault

_FAULTS = {9: TlsFault.NOT_YET, 10: TlsFault.EXPIRED, 62: TlsFault.NAME, 64: TlsFault.NAME}
"""The faults by OpenSSL's code of a verification (X509_V_ERR_*). Every other code is about the chain."""


CLOSED = "the connection was closed during the handshake: most likely the port does not speak TLS"


def read_certificate(host: str, port: int, settings: TlsSettings, within_s: float) -> ServedCertificate:
    """Return the certificate that the port serves to a client with these settings.

    It blocks: call it from a thread.
    """
    try:
        der = _handshake(host, port, ssl_context(settings), within_s)
    except ssl.SSLCertVerificationError as exc:
        fault = _FAULTS.get(exc.verify_code, TlsFault.CHAIN)
        return _described(host, port, fault, exc.verify_message, _unverified(host, port, settings, within_s))
    except (ssl.SSLEOFError, ConnectionResetError):
        return ServedCertificate(host, port, TlsFault.PROTOCOL, CLOSED)
    except TimeoutError:
        text = f"the port accepts the connection and answers no TLS handshake within {within_s:g} s"
        return ServedCertificate(host, port, TlsFault.PROTOCOL, text)
    except OSError as exc:
        text = refused_login(str(exc)) or type(exc).__name__
        return ServedCertificate(host, port, TlsFault.PROTOCOL, text)
    return _described(host, port, TlsFault.NONE, "", der)


def _handshake(host: str, port: int, context: ssl.SSLContext, within_s: float) -> bytes | None:
    with (
        socket.create_connection((host, port), within_s) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return secured.getpeercert(binary_form=True)


def _unverified(host: str, port: int, settings: TlsSettings, within_s: float) -> bytes | None:
    """Return the certificate that was refused, in DER. Nothing else is sent on that connection."""
    context = ssl_context(settings)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return _handshake(host, port, context, within_s)
    except OSError:
        return None


def _described(host: str, port: int, fault: TlsFault, reason: str, der: bytes | None) -> ServedCertificate:
    if der is None:
        return ServedCertificate(host, port, fault, reason)
    from cryptography.x509 import (
        DNSName,
        ExtensionNotFound,
        IPAddress,
        SubjectAlternativeName,
        load_der_x509_certificate,
    )

    try:
        certificate = load_der_x509_certificate(der)
    except ValueError as exc:  # OpenSSL takes some that this does not read
        return ServedCertificate(host, port, fault, reason or str(exc))
    names: tuple[str, ...] = ()
    try:
        stated = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        pass
    else:
        names = (*stated.get_values_for_type(DNSName), *map(str, stated.get_values_for_type(IPAddress)))
    return ServedCertificate(
        host,
        port,
        fault,
        reason,
        subject=certificate.subject.rfc4514_string(),
        names=names,
        ends_s=certificate.not_valid_after_utc.timestamp(),
    )
