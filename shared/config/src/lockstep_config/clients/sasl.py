"""The SASL mechanisms, each in one record: how a client's Java properties become a login.

`LOGIN_PARTS` says what becomes of a login in each library. To add a mechanism, add its record to `MECHANISMS`, and run
`make docs`. A mechanism that has no record raises `Untranslatable`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from lockstep_config.clients.iam import AWS_MSK_IAM, IAM_CLIENT_HANDLER, IAM_LOGIN_HANDLER, IAM_MODULE
from lockstep_config.clients.oauth import (
    HANDLER,
    OAUTHBEARER,
    OAUTHBEARER_MODULE,
    TokenSettings,
    iam_tokens,
    token_settings,
)
from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS, NotJaas, parse_jaas


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login with a user and a password. `mechanism` is the one that the broker is asked for."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    tokens: None = None

    def principal_name(self) -> str:
        """Return the name in ACLs."""
        return self.username


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A login with access tokens, which every client makes as OAUTHBEARER."""

    tokens: TokenSettings
    mechanism: ClassVar[str] = OAUTHBEARER

    def principal_name(self) -> str | None:
        """Return the claim `sub` of the newest token; None without a token, or if it has no such claim."""
        from lockstep_config.clients.token_source import (
            shared_token_source,  # http.client: only logins with tokens need it
        )

        return shared_token_source(self.tokens).subject


SaslLogin = Credentials | TokenLogin


class LoginPart(NamedTuple):
    """A part of a login by the name of its attribute, and what it is to each library."""

    name: str
    librdkafka: str
    """The setting."""
    wire: str
    """What our own connections do with it, for the table in `tls-and-sasl.md`. Faust's consumer has them, too."""


LOGIN_PARTS = (
    LoginPart("mechanism", "sasl.mechanism", "named in SaslHandshake"),
    LoginPart("username", "sasl.username", "sent by PLAIN and SCRAM"),
    LoginPart("password", "sasl.password", "sent by PLAIN; SCRAM sends a proof of it"),
    LoginPart("tokens", "oauth_cb", "asked for at each login, and sent by OAUTHBEARER"),
)


def librdkafka_login(login: SaslLogin) -> dict[str, str]:
    """Return a login as settings of librdkafka, all but `oauth_cb`, which cannot be pickled."""
    values = ((part.librdkafka, getattr(login, part.name, None)) for part in LOGIN_PARTS)
    return {setting: value for setting, value in values if isinstance(value, str)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslMechanism:
    """A SASL mechanism: the properties that it takes, and how they become a login."""

    name: str
    """The value of `sasl.mechanism`."""
    login_module: str
    """The Java class in `sasl.jaas.config`."""
    documentation: str
    """The text about the options for the table in `tls-and-sasl.md`."""
    required: tuple[str, ...] = ()
    """Options without which `sasl.jaas.config` is refused."""
    read: Callable[[Mapping[str, str], Mapping[str, str]], SaslLogin]
    """A function from a client's properties and the options in `sasl.jaas.config` to a login.

    It raises `Untranslatable`, reads no file and sends no request.
    """
    needs_jaas: bool = True
    client_handlers: tuple[str, ...] = ()
    """Values of `sasl.client.callback.handler.class` whose work Lockstep does."""
    reads_login_handler: bool = False
    """True if `read` judges `sasl.login.callback.handler.class`. If it is False, any value is refused."""
    strimzi_type: str = ""
    """The `authentication.type` of a Strimzi resource; empty if Strimzi has no such type."""


def _password_login(name: str, login_module: str, documentation: str) -> SaslMechanism:
    return SaslMechanism(
        name=name,
        login_module=login_module,
        documentation=documentation,
        required=("username", "password"),
        read=lambda _, options: Credentials(name, options["username"], options["password"]),
        strimzi_type=name.lower(),
    )


_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS: Mapping[str, SaslMechanism] = MappingProxyType(
    {
        mechanism.name: mechanism
        for mechanism in (
            _password_login("SCRAM-SHA-256", _SCRAM, "a user and its password, which the broker never sees"),
            _password_login("SCRAM-SHA-512", _SCRAM, "the same, with a longer hash"),
            _password_login(
                "PLAIN",
                "org.apache.kafka.common.security.plain.PlainLoginModule",
                "a user and its password, which the broker reads: use it under TLS only",
            ),
            SaslMechanism(
                name=OAUTHBEARER,
                login_module=OAUTHBEARER_MODULE,
                documentation="access tokens of an [OAuth server, a file](#oauthbearer), or a [cloud](#google-cloud)",
                read=lambda properties, options: TokenLogin(token_settings(properties, options)),
                needs_jaas=False,
                client_handlers=(
                    IAM_LOGIN_HANDLER,
                    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
                ),
                reads_login_handler=True,
                strimzi_type="oauth",
            ),
            SaslMechanism(
                name=AWS_MSK_IAM,
                login_module=IAM_MODULE,
                documentation="tokens that [AWS credentials](#aws-iam-amazon-msk) sign; the login is OAUTHBEARER",
                read=lambda properties, options: TokenLogin(iam_tokens(properties, options)),
                client_handlers=(IAM_CLIENT_HANDLER,),
            ),
        )
    }
)
"""The mechanisms by the value of `sasl.mechanism`."""

_JAVA_DEFAULT = "GSSAPI"
_INSTEAD = {_JAVA_DEFAULT: "Kerberos is not supported: use SCRAM-SHA-512, OAUTHBEARER or a client certificate"}
_CLIENT_HANDLER = "sasl.client.callback.handler.class"


def read_login(properties: Mapping[str, str]) -> SaslLogin:
    """Read `sasl.*` of a client whose protocol is SASL_PLAINTEXT or SASL_SSL.

    It reads no file and sends no request.

    Raises:
        Untranslatable: A property or an option cannot be used here.
    """
    mechanism = _mechanism(properties)
    _check_client_handler(properties, mechanism)
    if not mechanism.reads_login_handler:
        _refuse_class(properties, HANDLER)
    _refuse_class(properties, "sasl.login.class")
    return mechanism.read(properties, _options(properties, mechanism))


def _mechanism(properties: Mapping[str, str]) -> SaslMechanism:
    name = properties.get("sasl.mechanism", _JAVA_DEFAULT).strip().upper()
    if name not in MECHANISMS:
        unset = " (Java's default, for none is set)" if "sasl.mechanism" not in properties else ""
        instead = _INSTEAD.get(name, "it is not known")
        if any("software.amazon.msk" in properties.get(key, "") for key in (JAAS, _CLIENT_HANDLER)):
            instead = f"the login is AWS's: set sasl.mechanism={AWS_MSK_IAM}"
        raise Untranslatable("sasl.mechanism", f"is {name}{unset}: {instead}; known are {', '.join(MECHANISMS)}")
    return MECHANISMS[name]


def _check_client_handler(properties: Mapping[str, str], mechanism: SaslMechanism) -> None:
    handler = properties.get(_CLIENT_HANDLER, "").strip()
    if handler in mechanism.client_handlers:
        return
    for name, owner in MECHANISMS.items():
        if handler in owner.client_handlers:
            message = f"is {handler!r}, which goes with sasl.mechanism={name}, not with {mechanism.name}: set that"
            raise Untranslatable(_CLIENT_HANDLER, message)
    _refuse_class(properties, _CLIENT_HANDLER)


def _refuse_class(properties: Mapping[str, str], key: str) -> None:
    if properties.get(key, "").strip():
        raise Untranslatable(key, f"is {properties[key]!r}: Java classes cannot run here; remove it")


def _options(properties: Mapping[str, str], mechanism: SaslMechanism) -> Mapping[str, str]:
    """Return the options of the JAAS line, checked against the mechanism."""
    module = mechanism.login_module
    if not mechanism.needs_jaas and not properties.get(JAAS, "").strip():
        return {}
    if JAAS not in properties:
        options = "".join(f' {option}="..."' for option in mechanism.required)
        message = (
            f"is missing: {mechanism.name} needs one, as in {module} required{options}; (a file that a JVM names by "
            "java.security.auth.login.config is not read: copy here what its KafkaClient { } has, in one line)"
        )
        raise Untranslatable(JAAS, message)
    try:
        entry = parse_jaas(properties[JAAS])
    except NotJaas as exc:
        raise Untranslatable(JAAS, str(exc).replace("MODULE", module)) from exc
    if entry.module != module:
        raise Untranslatable(
            JAAS, f"names the module {entry.module}, but sasl.mechanism {mechanism.name} takes {module}"
        )
    if mechanism.required and entry.options.get("tokenauth", "false").lower() == "true":
        raise Untranslatable(
            JAAS, "asks for a delegation token (tokenauth), which neither of our clients can send: use the user itself"
        )
    for option in mechanism.required:
        if option not in entry.options:
            raise Untranslatable(JAAS, f'has no {option}="..."')
    return entry.options
