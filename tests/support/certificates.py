"""Certificates for tests: authorities, servers, clients, and those that must be refused."""

import datetime
import ipaddress
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from tests.support.java import find_java

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate with its private key; `above` are the certificates that lead from it to the root."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    above: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate_pem + "".join(
            certificate.public_bytes(Encoding.PEM).decode() for certificate in self.above
        )

    def key_pem(self, password: str | None = None) -> str:
        """Return the key as PKCS8, encrypted if there is a password."""
        how = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()

    def pem(self, file: Path, password: str | None = None) -> Path:
        """Write key and chain into one file, as Kafka has it. Return the file."""
        file.write_text(self.key_pem(password) + self.chain_pem)
        return file

    def pkcs12(self, file: Path, password: str, alias: str = "own") -> Path:
        how = BestAvailableEncryption(password.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(alias.encode(), self.key, self.certificate, self.above, how)
        )
        return file


class Authority:
    """A certificate authority that signs what it is asked to."""

    def __init__(self, name: str = "Lockstep test CA", under: "Authority | None" = None) -> None:
        self.own = self._sign(name, True, under)

    @property
    def pem(self) -> str:
        return self.own.certificate_pem

    def server(self, *hosts: str, days: tuple[float, float] = (-1, 30)) -> Certified:
        """Return a certificate for these names and addresses. It is good from and until `days` from now."""
        return self.certify(hosts[0] if hosts else "localhost", hosts or ("localhost", "127.0.0.1"), days)

    def certify(self, name: str, hosts: Sequence[str] = (), days: tuple[float, float] = (-1, 30)) -> Certified:
        return self._sign(name, False, self, hosts, days)

    def _sign(
        self,
        name: str,
        authority: bool,
        by: "Authority | None",
        hosts: Sequence[str] = (),
        days: tuple[float, float] = (-2, 30),
    ) -> Certified:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if by is None else by.own.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + days[0] * DAY)
            .not_valid_after(now + days[1] * DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(key if by is None else by.own.key, hashes.SHA256())
        return Certified(certificate, key, () if by is None else (by.own.certificate, *by.own.above))


def keytool(*arguments: str | Path) -> None:
    """Run the keytool beside the JVM that runs the brokers."""
    program = find_java().resolve().parent / "keytool"
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
