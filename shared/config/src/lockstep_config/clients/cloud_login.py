"""Logins to clouds, whose own libraries make the tokens. Each is optional and is loaded at the first token."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType

from lockstep_config.clients.azure import AzureSettings
from lockstep_config.clients.google import GoogleSettings
from lockstep_config.clients.iam import IamSettings

CloudLogin = IamSettings | GoogleSettings | AzureSettings


@dataclass(frozen=True, slots=True)
class TokenLibrary:
    """The library that makes the tokens of a cloud: its distribution, one of its modules, Lockstep's extra for it."""

    login: str
    distribution: str
    module: str
    extra: str


LIBRARIES: Mapping[type[CloudLogin], TokenLibrary] = MappingProxyType(
    {
        IamSettings: TokenLibrary("AWS IAM", "aws-msk-iam-sasl-signer-python", "aws_msk_iam_sasl_signer", "iam"),
        GoogleSettings: TokenLibrary("Google's credentials", "google-auth", "google.auth", "google"),
        AzureSettings: TokenLibrary("Azure's credentials", "azure-identity", "azure.identity", "azure"),
    }
)


def missing_library(login: CloudLogin) -> str | None:
    """Return why this process can make no token, or None if the library is installed. The library is not loaded."""
    library = LIBRARIES[type(login)]
    if _is_installed(library.module):
        return None
    return (
        f"logs in with {library.login}, for which the package {library.distribution} is missing: install "
        f"lockstep-kafka[{library.extra}] from the requirements file of a release, wherever services and Spark's "
        "executors run"
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package of the module is missing
        return False


def cloud_token(login: CloudLogin) -> tuple[str, float]:
    """Return a token and its end in Unix seconds.

    Raises:
        TokenUnavailable: The cloud gave no token.
        ImportError: The cloud's library is not installed.
    """
    # Each import loads a library of tens of megabytes, so it is made only if it is used.
    if isinstance(login, IamSettings):
        from lockstep_config.clients.iam_signer import iam_token

        return iam_token(login)
    if isinstance(login, GoogleSettings):
        from lockstep_config.clients.google_tokens import google_token

        return google_token(login)
    from lockstep_config.clients.azure_tokens import azure_token

    return azure_token(login)
