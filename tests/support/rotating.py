"""Clusters whose clients prove who they are by a password and a certificate, both of which can be replaced, and files
mounted as Kubernetes does it.

Tests reach such a cluster through `Broker.bootstrap`, without any of this; who is to prove itself goes through its
proxy: TLS with client certificates, and SCRAM inside it.
"""

import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import ScramMechanism

from tests.support import certificates
from tests.support.broker import Broker
from tests.support.clusters import set_scram_password
from tests.support.proxy import Proxy

USER, WRITER = "mirror", "writer"
"""Users that may do everything; the second for producers that log in as somebody else."""


class Authority(certificates.Authority):
    """A certificate authority of a test's own. `certificate` is its file."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(name)
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self.certificate = self._folder / "ca.crt"
        self.certificate.write_text(self.pem)

    def issue(self, subject: str) -> Path:
        """Return a new key and a certificate for it, in one PEM file as Java's clients and brokers want it. It serves
        for 127.0.0.1."""
        certified = self.certify(subject, ("127.0.0.1", "localhost"))
        both = self._folder / f"{subject}-{uuid.uuid4().hex[:8]}.pem"
        both.write_text(certified.key_pem() + certified.certificate_pem)
        return both


class Mount:
    """A folder of files as the kubelet mounts a secret: each is a link through `..data`, which is itself a link to a
    folder of this version's, and is swapped for the next one in one step."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._version = 0
        self._present: dict[str, str] = {}
        self.replace(files)

    def replace(self, files: Mapping[str, str]) -> None:
        """Give files these contents from now on. Files that are not named stay as they are."""
        self._present |= files
        self._version += 1
        version = self.folder / f"..version-{self._version}"
        version.mkdir()
        for name, text in self._present.items():
            (version / name).write_text(text)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        data, fresh = self.folder / "..data", self.folder / "..data_tmp"
        before = data.resolve() if data.is_symlink() else None
        fresh.symlink_to(version.name)
        os.replace(fresh, data)
        if before is not None:
            shutil.rmtree(before)

    def file(self, name: str) -> Path:
        """Return where a client finds it."""
        return self.folder / name


def guarded(alias: str, proxy: Proxy, identity: Path, trusted: Path) -> Broker:
    """Return a cluster whose proxied listener wants SCRAM within TLS with client certificates. `identity` is the
    broker's own, `trusted` whom it believes: both are read when it starts."""
    listener = "listener.name.proxied"
    return Broker(
        alias,
        behind=proxy,
        properties={
            **Broker.AUTHORIZER,
            "super.users": f"User:ANONYMOUS;User:{USER};User:{WRITER}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:SASL_SSL,CONTROLLER:PLAINTEXT",
            f"{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{listener}.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            f"{listener}.ssl.keystore.type": "PEM",
            f"{listener}.ssl.keystore.location": str(identity),
            f"{listener}.ssl.truststore.type": "PEM",
            f"{listener}.ssl.truststore.location": str(trusted),
            f"{listener}.ssl.client.auth": "required",
        },
    )


def set_password(broker: Broker, password: str, user: str = USER) -> None:
    """Set the only password that counts, for connections that are made from now on."""
    set_scram_password(broker.bootstrap, user, ScramMechanism.SCRAM_SHA_512, password)
