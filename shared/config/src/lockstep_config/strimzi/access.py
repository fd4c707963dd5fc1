"""The `tls` and `authentication` of a resource's cluster as Java's connection properties.

Secrets become references, `${strimzisecrets:NAMESPACE/NAME:KEY}`. Their values are read where all references are, and
a later check for changes finds their files there. This module is pure.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lockstep_config.clients.oauth import HANDLER, STRIMZI_HANDLER
from lockstep_config.clients.sasl import MECHANISMS
from lockstep_config.strimzi.lines import Lines, Part
from lockstep_config.strimzi.schema import AUTHENTICATION
from lockstep_config.text.config_providers import STRIMZI_SECRETS

_MECHANISMS = MappingProxyType(
    {kind: mechanism for mechanism in MECHANISMS.values() if (kind := mechanism.strimzi_type)}
)
_PASSWORD = frozenset({"type", "username", "passwordSecret"})
_OF_TYPE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(_MECHANISMS, _PASSWORD),
        "tls": frozenset({"type", "certificateAndKey"}),
        "custom": frozenset({"type", "sasl", "config"}),
        "oauth": _PASSWORD
        | {name for name, field in AUTHENTICATION.items() if field.option}
        | {"saslExtensions", "tlsTrustedCertificates", "disableTlsHostnameVerification"}
        | {"accessTokenIsJwt", "includeAcceptHeader", "enableMetrics"},
    }
)
_CUSTOM_PREFIXES = ("ssl.keystore.", "sasl.")


def add_connection(cluster: Part, alias: str, namespace: str, lines: Lines) -> None:
    """Add the lines `ALIAS.bootstrap.servers`, `ALIAS.security.protocol`, `ALIAS.ssl.*` and `ALIAS.sasl.*`."""
    # If the field is missing the line is empty, and the check of the line says what to write.
    lines.add_line(f"{alias}.bootstrap.servers", cluster.text("bootstrapServers"), cluster.place("bootstrapServers"))
    tls, authentication = cluster.part("tls"), cluster.part("authentication")
    kind = authentication.text("type") if authentication else ""
    sasl = kind in _MECHANISMS or (kind == "custom" and bool(authentication and authentication.flag("sasl")))
    if tls is not None or sasl:
        protocol = ("SASL_" if sasl else "") + ("SSL" if tls is not None else "PLAINTEXT")
        deciding = authentication if sasl and authentication is not None else tls
        assert deciding is not None
        lines.add_line(f"{alias}.security.protocol", protocol, deciding)
    if tls is not None and (trusted := _certificates(tls, "trustedCertificates", namespace, lines)):
        lines.add_line(f"{alias}.ssl.truststore.type", "PEM", tls.place("trustedCertificates"))
        lines.add_line(f"{alias}.ssl.truststore.certificates", trusted, tls.place("trustedCertificates"))
    if authentication is None or kind not in _OF_TYPE:
        return
    for name in authentication.node.items:
        if name not in _OF_TYPE[kind]:
            lines.without_effect(authentication.place(name), f"type {kind} does not use it")
    if kind == "tls":
        _add_client_certificate(authentication, tls, alias, namespace, lines)
    elif kind == "custom":
        _add_custom(authentication, alias, lines)
    else:
        _add_login(authentication, kind, alias, namespace, lines)


def _add_login(section: Part, kind: str, alias: str, namespace: str, lines: Lines) -> None:
    mechanism = _MECHANISMS[kind]
    lines.add_line(f"{alias}.sasl.mechanism", mechanism.name, section.place("type"))
    if kind == "oauth":
        lines.add_line(f"{alias}.{HANDLER}", STRIMZI_HANDLER, section.place("type"))
        options = _oauth_options(section, namespace, lines)
    else:
        options = _password_options(section, kind, namespace, lines)
    if options:
        words = [mechanism.login_module, "required", *(f'{name}="{value}"' for name, value in options.items())]
        lines.add_line(f"{alias}.sasl.jaas.config", f"{' '.join(words)};", section)


def _reference(secret: Part, name_of_key: str, namespace: str) -> str:
    """Return the reference to a secret, or an empty text if it is not complete, which is reported already."""
    name, key = secret.text("secretName"), secret.text(name_of_key)
    place = f"{namespace}/{name}" if namespace else name
    return f"${{{STRIMZI_SECRETS}:{place}:{key}}}" if name and key else ""


def _certificates(section: Part, field: str, namespace: str, lines: Lines) -> str:
    """Return references to all certificates of a list, one after the other."""
    references = []
    for secret in section.parts(field):
        keys = [key for key in ("certificate", "pattern") if secret.text(key)]
        if len(keys) != 1:
            fault = "has both certificate and pattern: keep one" if keys else "needs certificate or pattern"
            lines.problem(secret, fault)
        elif reference := _reference(secret, keys[0], namespace):
            references.append(reference)
    return "\n".join(references)


def _add_client_certificate(section: Part, tls: Part | None, alias: str, namespace: str, lines: Lines) -> None:
    secret = section.part("certificateAndKey")
    if secret is None:
        lines.problem(section.place("certificateAndKey"), "is missing: type tls needs the secret with both")
        return
    if tls is None:
        lines.note(
            section, "is tls, but the cluster has no tls section, so it is spoken to in the clear, as Strimzi does"
        )
        return
    chain, key = _reference(secret, "certificate", namespace), _reference(secret, "key", namespace)
    if chain and key:
        lines.add_line(f"{alias}.ssl.keystore.type", "PEM", secret)
        lines.add_line(f"{alias}.ssl.keystore.certificate.chain", chain, secret.place("certificate"))
        lines.add_line(f"{alias}.ssl.keystore.key", key, secret.place("key"))


def _password_options(section: Part, kind: str, namespace: str, lines: Lines) -> dict[str, str]:
    secret = section.part("passwordSecret")
    if not section.text("username"):
        lines.problem(section.place("username"), f"is missing: type {kind} needs it")
    if secret is None:
        lines.problem(
            section.place("passwordSecret"), f"is missing: type {kind} needs it, with secretName and password"
        )
        return {}
    user, password = section.text("username"), _reference(secret, "password", namespace)
    return {"username": _quotable(user), "password": password} if user and password else {}


def _oauth_options(section: Part, namespace: str, lines: Lines) -> dict[str, str]:
    """Return the options of Strimzi's own OAuth login, under its names."""
    options = {
        field.option: _quotable(section.text(name))
        for name, field in AUTHENTICATION.items()
        if field.option and not field.fields and section.text(name)
    }
    if section.flag("disableTlsHostnameVerification"):
        options["oauth.ssl.endpoint.identification.algorithm"] = ""
    if section.flag("accessTokenIsJwt") is False:
        options["oauth.access.token.is.jwt"] = "false"
    if section.flag("includeAcceptHeader") is False:
        options["oauth.include.accept.header"] = "false"
    extensions = section.settings("saslExtensions")
    options |= {f"oauth.sasl.extension.{setting.key}": _quotable(setting.value) for setting in extensions}
    secrets = [(name, "key", field.option) for name, field in AUTHENTICATION.items() if field.option and field.fields]
    for name, name_of_key, option in (*secrets, ("passwordSecret", "password", "oauth.password.grant.password")):
        secret = section.part(name)
        if secret is not None and (reference := _reference(secret, name_of_key, namespace)):
            options[option] = reference
    if trusted := _certificates(section, "tlsTrustedCertificates", namespace, lines):
        options["oauth.ssl.truststore.type"] = "PEM"
        options["oauth.ssl.truststore.certificates"] = trusted.replace("\n", " ")
    _check_oauth(section, lines)
    return options


def _check_oauth(section: Part, lines: Lines) -> None:
    if section.has("accessToken") or section.has("accessTokenLocation"):
        return
    proofs = ("clientSecret", "refreshToken", "clientAssertion", "clientAssertionLocation", "passwordSecret")
    missing_fields = [name for name in ("tokenEndpointUri", "clientId") if not section.text(name)]
    if not any(section.has(name) for name in proofs):
        missing_fields.append("clientSecret, refreshToken, clientAssertion or passwordSecret")
    if missing_fields:
        message = f"is oauth, which needs accessToken, or else also {' and '.join(missing_fields)}"
        lines.problem(section.place("type"), message)


def _add_custom(section: Part, alias: str, lines: Lines) -> None:
    for setting in section.settings():
        if not setting.key.startswith(_CUSTOM_PREFIXES):
            allowed = " and ".join(f"{prefix}*" for prefix in _CUSTOM_PREFIXES)
            lines.note(setting, f"is ignored, as Strimzi does: a custom authentication takes {allowed}")
        else:
            lines.add_line(f"{alias}.{setting.key}", setting.value, setting)


def _quotable(value: str) -> str:
    """Return a value as it is written between the quotes of a JAAS line."""
    return value.replace("\\", "\\\\").replace('"', '\\"')
