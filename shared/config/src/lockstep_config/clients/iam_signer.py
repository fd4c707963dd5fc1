"""The edge of `iam`: it finds AWS credentials and signs the token that MSK's brokers check.

It is the only module that loads AWS's packages, which takes a tenth of a second. It is imported when the first token
is made.
"""

import logging
import os
from typing import Any

import botocore.session
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.config import Config
from botocore.credentials import CredentialProvider, Credentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import InstanceMetadataRegionFetcher

from lockstep_config.clients.iam import IamSettings
from lockstep_config.clients.token_source import TokenUnavailable

ONE_TRY = Config(connect_timeout=10, read_timeout=10, retries={"total_max_attempts": 1})
"""The settings for a request to AWS's Security Token Service. It is tried once, because `TokenSource` asks again."""

log = logging.getLogger(__name__)


def iam_token(settings: IamSettings) -> tuple[str, float]:
    """Return a token and its end in Unix seconds.

    Each call looks for the credentials again, so that changed credentials count.

    Raises:
        TokenUnavailable: Credentials or the region are missing; the text says what is missing.
    """
    provider = _ConfiguredCredentials(settings)
    try:
        text, until_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(_region(settings), provider)
    except (BotoCoreError, ClientError) as exc:
        raise TokenUnavailable(f"AWS credentials of {_words_of(settings)} cannot be had: {_line(exc)}") from exc
    return text, until_ms / 1000


class _ConfiguredCredentials(CredentialProvider):  # type: ignore[misc]  # botocore ships no types
    """The credentials that the settings name, and no others.

    If a role cannot be assumed, there is no login as another identity.
    """

    METHOD = "lockstep"

    def __init__(self, settings: IamSettings) -> None:
        super().__init__()
        self._settings = settings

    def load(self) -> Any:
        settings = self._settings
        if settings.profile is None and settings.role_arn is not None:
            credentials = self._assumed(settings.role_arn)
        else:
            chosen = _session(settings).get_credentials()
            # Credentials may renew themselves between two reads; then key and token would not belong together.
            credentials = None if chosen is None else Credentials(*chosen.get_frozen_credentials()[:3])
        if credentials is None or not credentials.access_key or not credentials.secret_key:
            raise TokenUnavailable(
                f"there are no AWS credentials of {_words_of(settings)}: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or awsProfileName in sasl.jaas.config, or give the pod or the instance a role"
            )
        if settings.debug:
            self._log_identity(credentials)
        return credentials

    def _assumed(self, role: str) -> Credentials:
        settings = self._settings
        source = (settings.role_access_key_id, settings.role_secret_access_key, settings.role_session_token)
        external = {"ExternalId": settings.role_external_id} if settings.role_external_id else {}
        answer = self._sts(*source).assume_role(RoleArn=role, RoleSessionName=settings.role_session_name, **external)[
            "Credentials"
        ]
        return Credentials(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])

    def _log_identity(self, credentials: Credentials) -> None:
        try:
            client = self._sts(credentials.access_key, credentials.secret_key, credentials.token)
            identity = client.get_caller_identity()["Arn"]
        except (BotoCoreError, ClientError) as exc:
            log.warning("awsDebugCreds: whose the AWS credentials are cannot be asked: %s", _line(exc))
        else:
            log.info("awsDebugCreds: the AWS credentials are those of %s", identity)

    def _sts(self, key: str | None, secret: str | None, token: str | None) -> Any:
        return _session(self._settings).create_client(
            "sts",
            region_name=self._settings.sts_region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=ONE_TRY,
        )


def _line(exc: Exception) -> str:
    return " ".join(str(exc).split())


def _session(settings: IamSettings) -> Any:
    return botocore.session.Session(profile=settings.profile)


def _region(settings: IamSettings) -> str:
    """Return the region that the token is signed for.

    It is the broker's, else as in AWS's library the environment's, the profile's or the instance's.

    Raises:
        TokenUnavailable: None of them names a region.
    """
    configured = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    region = configured or _session(settings).get_config_variable("region")
    region = region or InstanceMetadataRegionFetcher(timeout=1, num_attempts=1).retrieve_region()
    if not region:
        raise TokenUnavailable("bootstrap.servers names no AWS region, nor does the environment: set AWS_REGION")
    return str(region)


def _words_of(settings: IamSettings) -> str:
    if settings.profile is not None:
        return f"the profile {settings.profile}"
    return f"the role {settings.role_arn}" if settings.role_arn is not None else "the usual chain"
