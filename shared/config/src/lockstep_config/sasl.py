"""Java's SASL properties as plain credentials: the mechanism, and the user that a `sasl.jaas.config` line names.

Supported: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512. Everything else raises `Untranslatable` and is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Credentials", "Untranslatable", "credentials_of"]

JAVA_DEFAULT_MECHANISM = "GSSAPI"

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_CLASSES = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")

_OPTION = re.compile(r"""\s*([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Untranslatable(ValueError):
    """A Java property that cannot be handed to our clients. `key` is the property, the text says why and what to do."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are to a broker. `mechanism` is SASL's name, upper case."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def credentials_of(properties: Mapping[str, str]) -> Credentials:
    """Read `sasl.*` of a client whose protocol is SASL_PLAINTEXT or SASL_SSL. Raises `Untranslatable`."""
    for key in _CLASSES:
        if properties.get(key, "").strip():
            raise Untranslatable(key, f"is {properties[key]!r}: Java classes cannot run here; remove it")
    mechanism = properties.get("sasl.mechanism", JAVA_DEFAULT_MECHANISM).strip().upper()
    if mechanism not in _MODULES:
        unset = " (Java's default, for none is set)" if "sasl.mechanism" not in properties else ""
        raise Untranslatable(
            "sasl.mechanism", f"is {mechanism}{unset}, which is not supported yet: known are {', '.join(_MODULES)}"
        )
    if "sasl.jaas.config" not in properties:
        raise Untranslatable(
            "sasl.jaas.config",
            f'is missing: {mechanism} needs one, as in {_MODULES[mechanism]} required username="..." password="...";',
        )
    options = _jaas_options(properties["sasl.jaas.config"], mechanism)
    if options.get("tokenauth", "false").lower() == "true":
        raise Untranslatable("sasl.jaas.config", "asks for a delegation token (tokenauth), which is not supported yet")
    for needed in ("username", "password"):
        if needed not in options:
            raise Untranslatable("sasl.jaas.config", f'has no {needed}="..."')
    return Credentials(mechanism, options["username"], options["password"])


def _jaas_options(text: str, mechanism: str) -> dict[str, str]:
    """The options of `MODULE FLAG name="value" ...;`. No message repeats the text: it holds the password."""
    statement = text.strip()
    if not statement.endswith(";"):
        raise Untranslatable("sasl.jaas.config", "does not end with a semicolon: add one")
    parts = statement[:-1].split(None, 2)
    if len(parts) < 2 or parts[1].lower() not in {"required", "requisite", "sufficient", "optional"}:
        raise Untranslatable(
            "sasl.jaas.config", f"is no JAAS line: write {_MODULES[mechanism]} required username=... ;"
        )
    module = parts[0]
    if module != _MODULES[mechanism]:
        raise Untranslatable(
            "sasl.jaas.config",
            f"names the module {module}, but sasl.mechanism {mechanism} takes {_MODULES[mechanism]}",
        )
    options: dict[str, str] = {}
    rest = parts[2].rstrip() if len(parts) == 3 else ""
    at = 0
    while at < len(rest):
        match = _OPTION.match(rest, at)
        if match is None:
            raise Untranslatable(
                "sasl.jaas.config",
                f'has something behind option {len(options)} that is no name="value": check its quotes',
            )
        name, double, single, bare = match.groups()
        quoted = double if double is not None else single
        options[name] = _ESCAPE.sub(_unescaped, quoted) if quoted is not None else bare
        at = match.end()
    return options


def _unescaped(match: re.Match[str]) -> str:
    character = match.group(1)
    return _ESCAPES.get(character, character)
