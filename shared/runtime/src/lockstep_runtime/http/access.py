"""Access to the pages: address, TLS, bearer token. Files are read again when they change."""

import hmac
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lockstep_config.text.files import read_content


class PagesUnusable(Exception):
    """The pages cannot be served with these options; the text says what is wrong and what to do."""


class PortInUse(PagesUnusable):
    """Another process listens on the port."""


EVERY_ADDRESS = "*"
"""The host of pages that listen on every address of the machine, IPv4 and IPv6."""


LONGEST_TOKEN = 8_192
"""Most bytes of a token's file: as many as a request's head may have."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The address of the pages, and the requests that may read them.

    Host `*` is every address, port 0 a free one. Without a token every client of the port may read everything. With
    one, `/live` and `/ready` stay open and show only the word.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None
    token: str = field(default="", repr=False)

    @property
    def everywhere(self) -> bool:
        """Return whether the pages listen on every address, of IPv4 and of IPv6."""
        return self.host in (EVERY_ADDRESS, "")

    @property
    def is_reachable(self) -> bool:
        """Return whether other machines can reach the pages."""
        return not _is_loopback(self.host)

    @property
    def guarded(self) -> bool:
        """Return whether a token is required."""
        return bool(self.token_file or self.token)

    def read_token(self) -> str:
        """Return the token as its file has it now; "" if the file cannot be read, so that every request is denied.

        Raises nothing: a file may be unreadable for a moment while it is replaced.
        """
        if self.token_file is None:
            return self.token
        try:
            return read_content(self.token_file, LONGEST_TOKEN).decode().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def admits(self, token: str) -> bool:
        """Return whether a request with this token may read `/status` and `/metrics`."""
        return not self.guarded or same_token(token, self.read_token())

    def serves(self, host: str) -> bool:
        """Return whether a request with this `Host` is for these pages.

        A page on loopback is for this machine. A name that is none of this machine's own comes from a browser that
        was led here by another site's page (DNS rebinding).
        """
        if not _is_loopback(self.host) or not host:
            return True
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return _is_loopback(name) or name.lower().endswith(".localhost")

    def check(self) -> None:
        """Raise PagesUnusable for an unusable token, or for half of a certificate's pair."""
        if self.token_file is not None and self.token:
            raise PagesUnusable("--token-file and LOCKSTEP_TOKEN both give a token: keep one")
        token = self.read_token()
        if self.token_file is not None and not token:
            raise PagesUnusable(
                f"--token-file {self.token_file} cannot be read or is empty, or it is no regular file "
                f"of at most {LONGEST_TOKEN} bytes: write the token into it"
            )
        if not _is_sendable(token):
            raise PagesUnusable(
                f"the token of {self.token_file or 'LOCKSTEP_TOKEN'} has a line break or another control character, "
                "which no request can send: it is one line"
            )
        if (self.certificate is None) != (self.key is None):
            raise PagesUnusable("--tls-cert and --tls-key go together: give both, or neither")

    def warnings(self) -> tuple[str, ...]:
        """Return what an operator should know of pages that other machines can reach."""
        if not self.is_reachable:
            return ()
        warnings = []
        if not self.guarded:
            warnings.append("anybody who reaches them can read status and metrics: --token-file requires a token")
        if self.certificate is None:
            warnings.append(
                "the token goes over the network in clear text: --tls-cert and --tls-key encrypt it"
                if self.guarded
                else "they are not encrypted: --tls-cert and --tls-key are for that"
            )
        return tuple(warnings)


class Certificate:
    """A server's TLS with a certificate and its key from files. `context` stays the same object for ever."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the two files. Raises PagesUnusable if they cannot be used together."""
        self._certificate = certificate
        self._key = key
        self._loaded_stamps = self._stamps()
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self._load(self.context)
        except (OSError, ssl.SSLError) as exc:
            raise PagesUnusable(f"--tls-cert {certificate} and --tls-key {key} cannot be used: {exc}") from exc

    def renew(self) -> str | None:
        """Use the files' new content for connections from now on, if the files have changed.

        Returns:
            None if they have not changed, "" if they are used now, else why they cannot be used. Then the old ones
                serve on.
        """
        stamps = self._stamps()
        if stamps == self._loaded_stamps:
            return None
        try:
            # Tried on a context of its own first: half of a pair would spoil the one in use.
            self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
            self._load(self.context)
        except (OSError, ssl.SSLError) as exc:
            return f"{self._certificate} and {self._key} cannot be used: {exc}"
        self._loaded_stamps = stamps
        return ""

    def _load(self, context: ssl.SSLContext) -> None:
        # A key that wants a password is an error, not a question on the terminal.
        context.load_cert_chain(self._certificate, self._key, password="")

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        try:
            return tuple((s.st_mtime_ns, s.st_size, s.st_ino) for s in (self._certificate.stat(), self._key.stat()))
        except OSError:
            return ()


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of a request, or "" if it has none. Names of headers are in any case."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def same_token(token: str, expected: str) -> bool:
    """Compare tokens in a time that does not depend on where they differ. An empty token is never right."""
    return bool(expected) and hmac.compare_digest(_token_bytes(token), _token_bytes(expected))


def _token_bytes(token: str) -> bytes:
    """Return the bytes of a token. Python has bytes of a header or a variable that are no UTF-8 as surrogates."""
    return token.encode("utf-8", "surrogateescape")


def _is_sendable(token: str) -> bool:
    """Return whether a header can have the token as its value."""
    return not any(letter < " " or letter == "\x7f" for letter in token)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
