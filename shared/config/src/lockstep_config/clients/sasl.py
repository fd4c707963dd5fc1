"""Java's SASL properties as what our clients need: the mechanism, and the user that a `sasl.jaas.config` line names, or
where access tokens come from (`oauth`).

Supported: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM. Everything else raises `Untranslatable` and is
named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.clients.iam import AWS_MSK_IAM, IAM_CLIENT_HANDLER, IAM_LOGIN_HANDLER, IAM_MODULE
from lockstep_config.clients.oauth import OAUTHBEARER, OAUTHBEARER_MODULE, TokenSettings, iam_tokens, token_settings
from lockstep_config.keys.unsupported_property import Untranslatable
from lockstep_config.text.jaas import JAAS, JaasEntry, NotJaas, entry_of

__all__ = ["Credentials", "login_of"]

JAVA_DEFAULT_MECHANISM = "GSSAPI"

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: OAUTHBEARER_MODULE,
    AWS_MSK_IAM: IAM_MODULE,
}

_INSTEAD = {
    "GSSAPI": "Kerberos is not supported: use SCRAM-SHA-512, OAUTHBEARER or a client certificate",
}

_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_CLIENT_HANDLERS = {
    OAUTHBEARER: (
        IAM_LOGIN_HANDLER,
        "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
    ),
    AWS_MSK_IAM: (IAM_CLIENT_HANDLER,),
}
"""Java classes by mechanism of which we do what they do: AWS's, and Kafka's default."""

_LOGIN_CLASSES = ("sasl.login.callback.handler.class", "sasl.login.class")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Our login at a broker. `mechanism` is SASL's name, upper case."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def login_of(properties: Mapping[str, str]) -> Credentials | TokenSettings:
    """Read `sasl.*` of a client whose protocol is SASL_PLAINTEXT or SASL_SSL. Raises `Untranslatable`; reads no file
    and asks nobody."""
    mechanism = _mechanism(properties)
    _check_client_handler(properties, mechanism)
    if mechanism == AWS_MSK_IAM:
        for key in _LOGIN_CLASSES:
            _refuse_class(properties, key)
        return iam_tokens(properties, _entry(properties, mechanism).options)
    if mechanism == OAUTHBEARER:
        _refuse_class(properties, "sasl.login.class")
        written = properties.get(JAAS, "").strip()
        return token_settings(properties, _entry(properties, mechanism).options if written else {})
    for key in _LOGIN_CLASSES:
        _refuse_class(properties, key)
    return _credentials(_entry(properties, mechanism), mechanism)


def _mechanism(properties: Mapping[str, str]) -> str:
    mechanism = properties.get("sasl.mechanism", JAVA_DEFAULT_MECHANISM).strip().upper()
    if mechanism not in _MODULES:
        unset = " (Java's default, for none is set)" if "sasl.mechanism" not in properties else ""
        instead = _INSTEAD.get(mechanism, "it is not known")
        if any("software.amazon.msk" in properties.get(key, "") for key in (JAAS, _CLIENT_HANDLER)):
            instead = f"the login is AWS's: set sasl.mechanism={AWS_MSK_IAM}"
        raise Untranslatable("sasl.mechanism", f"is {mechanism}{unset}: {instead}; known are {', '.join(_MODULES)}")
    return mechanism


def _check_client_handler(properties: Mapping[str, str], mechanism: str) -> None:
    handler = properties.get(_CLIENT_HANDLER, "").strip()
    if handler in _CLIENT_HANDLERS.get(mechanism, ()):
        return
    belongs = next((name for name, classes in _CLIENT_HANDLERS.items() if handler in classes), None)
    if belongs is not None:
        raise Untranslatable(
            _CLIENT_HANDLER, f"is {handler!r}, which goes with sasl.mechanism={belongs}, not with {mechanism}: set that"
        )
    _refuse_class(properties, _CLIENT_HANDLER)


def _refuse_class(properties: Mapping[str, str], key: str) -> None:
    if properties.get(key, "").strip():
        raise Untranslatable(key, f"is {properties[key]!r}: Java classes cannot run here; remove it")


def _entry(properties: Mapping[str, str], mechanism: str) -> JaasEntry:
    module = _MODULES[mechanism]
    if JAAS not in properties:
        options = "" if mechanism == AWS_MSK_IAM else ' username="..." password="..."'
        raise Untranslatable(JAAS, f"is missing: {mechanism} needs one, as in {module} required{options};")
    try:
        entry = entry_of(properties[JAAS])
    except NotJaas as exc:
        raise Untranslatable(JAAS, str(exc).replace("MODULE", module)) from exc
    if entry.module != module:
        raise Untranslatable(JAAS, f"names the module {entry.module}, but sasl.mechanism {mechanism} takes {module}")
    return entry


def _credentials(entry: JaasEntry, mechanism: str) -> Credentials:
    options = entry.options
    if options.get("tokenauth", "false").lower() == "true":
        raise Untranslatable(
            JAAS, "asks for a delegation token (tokenauth), which neither of our clients can send: use the user itself"
        )
    for needed in ("username", "password"):
        if needed not in options:
            raise Untranslatable(JAAS, f'has no {needed}="..."')
    return Credentials(mechanism, options["username"], options["password"])
