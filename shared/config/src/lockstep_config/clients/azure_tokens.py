"""The edge of `azure`: it asks Azure's identity library for a token.

It is the only module that loads Azure's packages. It is imported when the first token is made.
"""

import logging

from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from azure.identity import (
    CertificateCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from lockstep_config.clients.azure import AzureCredential, AzureSettings
from lockstep_config.clients.token_source import TokenUnavailable

SHOWN = 600
"""The most characters of an error of Azure's library in a message. The chain has a sentence for each member."""


def azure_token(settings: AzureSettings) -> tuple[str, float]:
    """Return a token and its end in Unix seconds.

    Raises:
        TokenUnavailable: Azure gave no token; the text has the library's words.
    """
    # The library logs each failure as a warning of several lines. TokenUnavailable has the same words.
    logging.getLogger("azure").setLevel(logging.ERROR)
    try:
        token = make_credential(settings).get_token(settings.scope)
    except (AzureError, OSError, ValueError) as exc:
        raise TokenUnavailable(
            f"Azure gave no token for {settings.scope} by {_words_of(settings)}: {_line(exc)}; set AZURE_TENANT_ID, "
            "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or give the pod or the machine an identity"
        ) from exc
    return token.token, float(token.expires_on)


def make_credential(settings: AzureSettings) -> TokenCredential:
    """Make the credential that the settings name.

    Raises:
        ValueError: The library lacks a value for this credential.
    """
    authority = {} if settings.authority is None else {"authority": settings.authority}
    tenant, client = settings.tenant_id or "", settings.client_id or ""
    match settings.credential:
        case AzureCredential.ENVIRONMENT:
            return EnvironmentCredential()
        case AzureCredential.WORKLOAD:
            return WorkloadIdentityCredential()
        case AzureCredential.MANAGED_IDENTITY:
            return ManagedIdentityCredential(client_id=settings.client_id)
        case AzureCredential.CLIENT_SECRET:
            return ClientSecretCredential(tenant, client, settings.client_secret or "", **authority)
        case AzureCredential.CERTIFICATE:
            return CertificateCredential(
                tenant, client, settings.certificate, password=settings.certificate_password, **authority
            )
        case AzureCredential.DEFAULT:
            ids = {"managed_identity_client_id": client, "workload_identity_client_id": client} if client else {}
            return DefaultAzureCredential(**ids, **authority)


def _words_of(settings: AzureSettings) -> str:
    if settings.credential is AzureCredential.DEFAULT:
        return "the chain of Azure Identity"
    return f"the credential {settings.credential}"


def _line(exc: Exception) -> str:
    words = " ".join(str(exc).split())
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}..."
