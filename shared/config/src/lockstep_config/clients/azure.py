"""Logins with Microsoft Entra ID to Azure Event Hubs, by the Java classes that exist for it.

Microsoft's class for Kafka is in Spring Cloud Azure. Others use Conduktor's, or one of Microsoft's examples, which
people compile themselves. All of them ask Azure's identity library for a token, and so does Lockstep. This module is
pure: it reads no file and sends no request.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS, misspelt_option

SPRING_HANDLERS = (
    "com.azure.spring.cloud.service.implementation.kafka.KafkaOAuth2AuthenticateCallbackHandler",
    "com.azure.spring.cloud.service.kafka.KafkaOAuth2AuthenticateCallbackHandler",
)
CONDUKTOR_HANDLER = "io.conduktor.kafka.security.oauthbearer.azure.AzureManagedIdentityCallbackHandler"
EXAMPLES = ("CustomAuthenticateCallbackHandler", "de.microsoft.examples.AzureAuthenticateCallbackHandler")
"""Classes of Microsoft's examples. Other projects may use these names too, so they count for Event Hubs alone."""

_EVENT_HUBS = re.compile(
    r"[\w-]+\.servicebus\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn|cloudapi\.de)", re.IGNORECASE
)

_SPRING_NAMES = {
    "azure.profile.tenant-id": "tenant_id",
    "azure.profile.environment.active-directory-endpoint": "authority",
    "azure.credential.client-id": "client_id",
    "azure.credential.client-secret": "client_secret",
    "azure.credential.client-certificate-path": "certificate",
    "azure.credential.client-certificate-password": "certificate_password",
}
_CLOUD = "azure.profile.cloud-type"
_AUTHORITIES = {
    "AZURE": "https://login.microsoftonline.com",
    "AZURE_CHINA": "https://login.chinacloudapi.cn",
    "AZURE_US_GOVERNMENT": "https://login.microsoftonline.us",
}
_MANAGED = "azure.credential.managed-identity-enabled"
_CONDUKTOR_NAMES = {
    "tenantId": "tenant_id",
    "clientId": "client_id",
    "certificate": "certificate",
    "certificatePass": "certificate_password",
}
_KIND = "azureAuthType"
_NO_MATTER = re.compile(r"azure\.(?:configured|profile\.subscription-id|profile\.environment\.[\w-]+)")
"""Options that Spring's other clients read. The login does not need them."""


class AzureCredential(StrEnum):
    """A kind of credential in Azure's identity library."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    WORKLOAD = "workload"
    MANAGED_IDENTITY = "managed-identity"
    CLIENT_SECRET = "client-secret"  # noqa: S105  # the kind, no secret
    CERTIFICATE = "clientcertificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSettings:
    """The credential that is asked for a token, and the scope of the token.

    Equal settings may share a token. `DEFAULT` is the chain of Azure Identity: environment, workload identity,
    managed identity, command lines.
    """

    scope: str
    credential: AzureCredential = AzureCredential.DEFAULT
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    certificate: str | None = None
    certificate_password: str | None = field(default=None, repr=False)
    authority: str | None = None


def is_azure_handler(handler: str, bootstrap_servers: str) -> bool:
    """Return whether a login handler asks Azure for tokens."""
    if handler in EXAMPLES:
        return _EVENT_HUBS.match(_host(bootstrap_servers)) is not None
    return handler == CONDUKTOR_HANDLER or handler in SPRING_HANDLERS


def azure_settings(handler: str, bootstrap_servers: str, options: Mapping[str, str]) -> AzureSettings:
    """Read the JAAS options of a login handler that `is_azure_handler` knows.

    Raises:
        Untranslatable: An option is unknown, or the options do not fit together.
    """
    scope = f"https://{_host(bootstrap_servers)}/.default"
    if handler == CONDUKTOR_HANDLER:
        return _conduktor_settings(options, scope)
    if handler in SPRING_HANDLERS:
        return _spring_settings(options, scope)
    for name in options:
        raise Untranslatable(JAAS, f"has {name}, which no class of Microsoft's examples reads: remove it")
    return AzureSettings(scope=scope)


def _check_names(options: Mapping[str, str], known_names: Sequence[str]) -> None:
    """Refuse an unknown Azure option, and one close to a known one: without it another identity would log in."""
    for name in options:
        meant = misspelt_option(name, known_names)
        if name in known_names or _NO_MATTER.fullmatch(name) or not (meant or name.startswith("azure")):
            continue
        hint = f": did you mean {meant}?" if meant else ""
        raise Untranslatable(JAAS, f"has {name}, which Azure's login does not know{hint}")


def _spring_settings(options: Mapping[str, str], scope: str) -> AzureSettings:
    for name in ("azure.credential.username", "azure.credential.password"):
        if options.get(name):
            raise Untranslatable(
                JAAS, f"has {name}: Microsoft has retired logins with a user's password; use a client or an identity"
            )
    _check_names(options, (*_SPRING_NAMES, _CLOUD, _MANAGED))
    fields = {_SPRING_NAMES[name]: text for name, text in options.items() if text and name in _SPRING_NAMES}
    if cloud := options.get(_CLOUD):
        if cloud.upper() not in _AUTHORITIES:
            raise Untranslatable(JAAS, f"has {_CLOUD} {cloud!r}: known are {', '.join(_AUTHORITIES)}")
        fields.setdefault("authority", _AUTHORITIES[cloud.upper()])
    return _choose_credential(scope, fields, is_managed=options.get(_MANAGED, "").lower() == "true")


def _conduktor_settings(options: Mapping[str, str], scope: str) -> AzureSettings:
    _check_names(options, (*_CONDUKTOR_NAMES, _KIND, "scope"))
    fields = {_CONDUKTOR_NAMES[name]: text for name, text in options.items() if text and name in _CONDUKTOR_NAMES}
    kind, scope = options.get(_KIND, ""), options.get("scope") or scope
    if kind in (AzureCredential.ENVIRONMENT, AzureCredential.WORKLOAD):
        return AzureSettings(scope=scope, credential=AzureCredential(kind))
    if kind and kind != AzureCredential.CERTIFICATE:
        raise Untranslatable(JAAS, f"has {_KIND} {kind!r}: known are environment, workload and clientcertificate")
    if kind and "certificate" not in fields:
        raise Untranslatable(JAAS, f'has {_KIND}="{kind}" and no certificate="FILE"')
    return _choose_credential(scope, fields, is_managed=False)


def _choose_credential(scope: str, fields: Mapping[str, str], *, is_managed: bool) -> AzureSettings:
    """Choose the credential as Azure's libraries: a client's secret or certificate, a managed identity, the chain."""
    credential = AzureCredential.DEFAULT
    if is_managed:
        credential = AzureCredential.MANAGED_IDENTITY
    elif "client_secret" in fields:
        credential = AzureCredential.CLIENT_SECRET
    elif "certificate" in fields:
        credential = AzureCredential.CERTIFICATE
    if credential in (AzureCredential.CLIENT_SECRET, AzureCredential.CERTIFICATE):
        for name, noun in (("tenant_id", "tenant"), ("client_id", "client")):
            if name not in fields:
                raise Untranslatable(JAAS, f"has a secret or a certificate, and no id of the {noun} that it belongs to")
    return AzureSettings(scope=scope, credential=credential, **fields)


def _host(bootstrap_servers: str) -> str:
    return bootstrap_servers.split(",")[0].strip().rpartition(":")[0]
