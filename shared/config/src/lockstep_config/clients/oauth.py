"""The source of access tokens for SASL/OAUTHBEARER, read from Java's properties.

Three spellings are known. Kafka's own (KIP-768, KIP-1139) has properties and JAAS options as keys. That of Strimzi's
`JaasClientOauthLoginCallbackHandler` has JAAS options that begin with `oauth.`. Those of clouds are in `iam`,
`google` and `azure`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from lockstep_config.clients.azure import CONDUKTOR_HANDLER, SPRING_HANDLERS, azure_settings, is_azure_handler
from lockstep_config.clients.cloud_login import CloudLogin
from lockstep_config.clients.google import GOOGLE_HANDLER, google_settings
from lockstep_config.clients.iam import IAM_LOGIN_HANDLER, MAX_BACKOFF_MS, MAX_RETRIES, iam_number, iam_settings
from lockstep_config.clients.tls import TlsSettings, read_tls
from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS

OAUTHBEARER = "OAUTHBEARER"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

KAFKA_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"

HANDLER = "sasl.login.callback.handler.class"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")

JWT_BEARER_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

Field = tuple[str, str]
OptionReader = Callable[[str], str | None]
"""A function that returns one of Strimzi's options by its name without `oauth.`, or None if it is not set."""

_EXTENSION = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRule:
    """The rule when a token is renewed: `sasl.login.refresh.*`, times in seconds, with Java's defaults."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: float = 60.0
    buffer_s: float = 300.0


SYSTEM_TRUST = TlsSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """A source of access tokens.

    With `token` or `token_file` the token exists already. With `cloud` the library of a cloud makes it in this
    process. Otherwise `endpoint` is asked with the fields of `form`; values of `form_files` are read from files. The
    request is made as `client_id` if there is a secret. Equal settings may share a token.

    `retry_for_s` bounds the time in which a failed request is repeated, `retries` their number; None means no such
    bound. Pauses double from `retry_first_s` to `retry_longest_s`. `longest_s` bounds the life of a token.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    cloud: CloudLogin | None = None
    endpoint: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    encode_header: bool = False
    form: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    form_files: tuple[tuple[str, str], ...] = ()
    extensions: tuple[tuple[str, str], ...] = ()
    tls: TlsSettings = SYSTEM_TRUST
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 10.0
    retry_first_s: float = 0.1
    retry_longest_s: float | None = None
    retry_for_s: float | None = 10.0
    retries: int | None = None
    longest_s: float | None = None
    refresh: RefreshRule = RefreshRule()


def token_settings(properties: Mapping[str, str], options: Mapping[str, str]) -> TokenSettings:
    """Read `sasl.*` of a client whose mechanism is OAUTHBEARER.

    Args:
        properties: The client's properties under Java's names.
        options: The options of its JAAS line.

    Raises:
        Untranslatable: A property or an option cannot be used here.
    """
    handler = properties.get(HANDLER, "").strip()
    refresh = _refresh_rule(properties)
    if handler == STRIMZI_HANDLER or (not handler and any(name.startswith("oauth.") for name in options)):
        return _strimzi_tokens(options, refresh)
    if handler == IAM_LOGIN_HANDLER:
        return iam_tokens(properties, options)
    servers = properties.get("bootstrap.servers", "")
    if handler == GOOGLE_HANDLER:
        return TokenSettings(cloud=google_settings(options), retries=0, refresh=refresh)
    if is_azure_handler(handler, servers):
        return TokenSettings(cloud=azure_settings(handler, servers, options), retries=0, refresh=refresh)
    if handler and handler not in KAFKA_HANDLERS:
        raise Untranslatable(
            HANDLER,
            f"is {handler!r}: Java classes cannot run here; known are Kafka's {KAFKA_HANDLERS[0]}, "
            f"Strimzi's {STRIMZI_HANDLER}, AWS's {IAM_LOGIN_HANDLER}, Google's {GOOGLE_HANDLER}, "
            f"and for Azure {SPRING_HANDLERS[0]} and {CONDUKTOR_HANDLER}",
        )
    return _kafka_tokens(properties, options, refresh)


def iam_tokens(properties: Mapping[str, str], options: Mapping[str, str]) -> TokenSettings:
    """Return the source of the tokens that AWS credentials sign, with the arguments of `token_settings`.

    Raises:
        Untranslatable: A property or an option cannot be used here.
    """
    return TokenSettings(
        cloud=iam_settings(properties.get("bootstrap.servers", ""), options),
        retry_first_s=0.5,
        retry_longest_s=iam_number(options, MAX_BACKOFF_MS, 5_000) / 1000,
        retry_for_s=None,
        retries=iam_number(options, MAX_RETRIES, 3),
        refresh=_refresh_rule(properties),
    )


def _kafka_tokens(properties: Mapping[str, str], options: Mapping[str, str], refresh: RefreshRule) -> TokenSettings:
    retriever = properties.get(RETRIEVER, "").strip().rpartition(".")[2]
    if retriever and retriever not in _RETRIEVERS:
        raise Untranslatable(
            RETRIEVER, f"is {retriever}, which is not supported: use client credentials, or a token from a file"
        )
    url = properties.get(ENDPOINT, "").strip()
    if not url:
        problem = "is missing"
        if any(name.startswith("unsecuredLogin") for name in options):
            problem = "JAAS options unsecuredLogin... make tokens that nobody signed, which is not supported"
        raise Untranslatable(ENDPOINT, f"{problem}: say where tokens come from, https://... or file:///...")
    extensions = _extensions(options, "extension_")
    parts = urlsplit(url)
    if parts.scheme.lower() == "file":
        return TokenSettings(token_file=unquote(parts.path), extensions=extensions, refresh=refresh)
    _check_url(ENDPOINT, url)

    def stated(name: str, option: str) -> str | None:
        return properties.get(f"sasl.oauthbearer.{name}", "").strip() or options.get(option) or None

    client = stated("client.credentials.client.id", "clientId")
    secret = stated("client.credentials.client.secret", "clientSecret")
    if client is None or secret is None:
        name = "id" if client is None else "secret"
        raise Untranslatable(f"sasl.oauthbearer.client.credentials.client.{name}", f"is missing: {url} asks for it")
    scope = stated("scope", "scope")
    most_ms = _number(properties, "sasl.login.retry.backoff.max.ms", 10_000)
    return TokenSettings(
        endpoint=url,
        client_id=client,
        client_secret=secret,
        encode_header=properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true",
        form=(("grant_type", "client_credentials"), *((("scope", scope),) if scope else ())),
        extensions=extensions,
        tls=_tls(options, ""),
        connect_timeout_s=_number(properties, "sasl.login.connect.timeout.ms", 10_000) / 1000,
        read_timeout_s=_number(properties, "sasl.login.read.timeout.ms", 10_000) / 1000,
        retry_first_s=_number(properties, "sasl.login.retry.backoff.ms", 100) / 1000,
        retry_for_s=most_ms / 1000,
        refresh=refresh,
    )


def _strimzi_tokens(options: Mapping[str, str], refresh: RefreshRule) -> TokenSettings:
    def option_value(name: str) -> str | None:
        return options.get(f"oauth.{name}") or None

    extensions = _extensions(options, "oauth.sasl.extension.")
    longest = _option_number(options, "oauth.max.token.expiry.seconds", -1)
    bound = longest if longest > 0 else None
    file, text = option_value("access.token.location"), option_value("access.token")
    if file or text:
        # A location goes before the text beside it, as in Strimzi's handler.
        token = None if file else text
        return TokenSettings(token_file=file, token=token, extensions=extensions, longest_s=bound, refresh=refresh)
    endpoint, client = option_value("token.endpoint.uri"), option_value("client.id")
    if endpoint is None:
        raise Untranslatable(
            JAAS, "has neither oauth.token.endpoint.uri nor oauth.access.token: say where tokens come from"
        )
    _check_url(JAAS, endpoint)
    if client is None:
        raise Untranslatable(JAAS, 'has no oauth.client.id="..."')
    secret = option_value("client.secret")
    form, files = _strimzi_grant(option_value, client, secret)
    form += [(name, value) for name in ("scope", "audience") if (value := option_value(name)) is not None]
    retries = max(0, int(_option_number(options, "oauth.http.retries", 0)))
    return TokenSettings(
        endpoint=endpoint,
        client_id=client,
        # With a user's password Strimzi sends an empty secret.
        client_secret=secret if secret is not None or ("grant_type", "password") not in form else "",
        encode_header=True,
        form=tuple(form),
        form_files=tuple(files),
        extensions=extensions,
        tls=_tls(options, "oauth."),
        connect_timeout_s=_option_number(options, "oauth.connect.timeout.seconds", 60),
        read_timeout_s=_option_number(options, "oauth.read.timeout.seconds", 60),
        retry_first_s=max(0.0, _option_number(options, "oauth.http.retry.pause.millis", 0)) / 1000,
        retry_for_s=None,
        retries=retries,
        longest_s=bound,
        refresh=refresh,
    )


def _strimzi_grant(option_value: OptionReader, client: str, secret: str | None) -> tuple[list[Field], list[Field]]:
    """Return the fields of the request, and the fields whose value is in a file."""
    form, files = _text_or_file(option_value, "refresh_token", "refresh.token")
    if form or files:
        return [("grant_type", "refresh_token"), ("client_id", client), *form], files
    user, password = option_value("password.grant.username"), option_value("password.grant.password")
    if user is not None:
        if password is None:
            raise Untranslatable(JAAS, "has oauth.password.grant.username without oauth.password.grant.password")
        return [("grant_type", "password"), ("username", user), ("password", password)], []
    grant = ("grant_type", option_value("client.credentials.grant.type") or "client_credentials")
    if secret is not None:
        return [grant], []
    form, files = _text_or_file(option_value, "client_assertion", "client.assertion")
    if form or files:
        kind = option_value("client.assertion.type") or JWT_BEARER_ASSERTION
        return [grant, ("client_id", client), ("client_assertion_type", kind), *form], files
    raise Untranslatable(
        JAAS,
        "has a token endpoint and no secret for it: set oauth.client.secret, oauth.refresh.token, "
        "oauth.client.assertion or oauth.password.grant.username",
    )


def _text_or_file(option_value: OptionReader, name: str, option: str) -> tuple[list[Field], list[Field]]:
    file, text = option_value(f"{option}.location"), option_value(option)
    if file is not None:
        return [], [(name, file)]
    return ([(name, text)] if text is not None else []), []


def _refresh_rule(properties: Mapping[str, str]) -> RefreshRule:
    def number(name: str, default: float, least: float, most: float) -> float:
        key = f"sasl.login.refresh.{name}"
        value = _number(properties, key, default)
        if not least <= value <= most:
            raise Untranslatable(key, f"is {value:g}: it takes {least:g} to {most:g}")
        return value

    return RefreshRule(
        window_factor=number("window.factor", 0.8, 0.5, 1.0),
        window_jitter=number("window.jitter", 0.05, 0.0, 0.25),
        min_period_s=number("min.period.seconds", 60, 0, 900),
        buffer_s=number("buffer.seconds", 300, 0, 3600),
    )


def _number(properties: Mapping[str, str], key: str, default: float) -> float:
    text = properties.get(key, "").strip()
    try:
        return float(text) if text else default
    except ValueError as exc:
        raise Untranslatable(key, "is no number") from exc


def _option_number(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(options[name]) if options.get(name) else default
    except ValueError as exc:
        raise Untranslatable(JAAS, f"has {name}, which is no number") from exc


def _check_url(key: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("https", "http") or not parts.hostname:
        option = "oauth.token.endpoint.uri " if key == JAAS else ""
        raise Untranslatable(key, f"{option}is no https://HOST/... address")
    if parts.username or parts.password:
        raise Untranslatable(key, "has a user in its address: give the client's id and secret by their own keys")


def _extensions(options: Mapping[str, str], prefix: str) -> tuple[tuple[str, str], ...]:
    extensions = tuple((name.removeprefix(prefix), value) for name, value in options.items() if name.startswith(prefix))
    for name, value in extensions:
        if not _EXTENSION.fullmatch(name) or name == "auth" or not _EXTENSION_VALUE.fullmatch(value):
            raise Untranslatable(
                JAAS, f"has {prefix}{name}, which is no SASL extension: letters, but not auth, and text"
            )
    return extensions


def _tls(options: Mapping[str, str], prefix: str) -> TlsSettings:
    """Read `ssl.*` of the JAAS line, behind `prefix`: the certificates that are trusted at the token endpoint."""
    own = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(f"{prefix}ssl.")}
    try:
        # Blanks count in passwords of Strimzi's options, which are no properties of Kafka.
        return read_tls(own, trims_passwords=not prefix)
    except Untranslatable as exc:
        raise Untranslatable(JAAS, f"has {prefix}{exc.key}, which {exc}") from exc
