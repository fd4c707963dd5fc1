"""AWS IAM as a login to Amazon MSK, read from the properties of AWS's Java library.

MSK's brokers take IAM's signed token under two names of SASL: `AWS_MSK_IAM`, which AWS's library alone speaks, and
OAUTHBEARER. Both reach the same listener, so every client here uses OAUTHBEARER with a token of `iam_signer`. This
module is pure: it reads no file and sends no request.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS, misspelt_option

AWS_MSK_IAM = "AWS_MSK_IAM"
IAM_MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
IAM_CLIENT_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
IAM_LOGIN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"

MAX_RETRIES, MAX_BACKOFF_MS = "awsMaxRetries", "awsMaxBackOffTimeMs"

_OPTIONS = (
    *("awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsRoleExternalId", "awsRoleAccessKeyId"),
    *("awsRoleSecretAccessKey", "awsRoleSessionToken", "awsStsRegion", "awsDebugCreds", MAX_RETRIES, MAX_BACKOFF_MS),
)

# Names as b-1.orders.ab12cd.c2.kafka.us-east-1.amazonaws.com, boot-x.c1.kafka-serverless.eu-west-3.amazonaws.com.
_REGION = re.compile(
    r"(?<![a-z0-9])[a-z]{2,4}(?:-(?:gov|iso[a-z]?|[a-z]{2}))?-(?:central|(?:north|south)?(?:east|west)|north|south)-\d(?!\w)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IamSettings:
    """The AWS credentials that sign a token, and the region for which they sign it.

    Equal settings may share a token. A `profile` counts before a `role_arn`, as in AWS's library. Without both the
    usual chain is asked: environment, web identity, shared files, container, instance. `region` is None if no
    broker's name has it.
    """

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = "aws-msk-iam-auth"
    role_external_id: str | None = field(default=None, repr=False)
    role_access_key_id: str | None = None
    role_secret_access_key: str | None = field(default=None, repr=False)
    role_session_token: str | None = field(default=None, repr=False)
    sts_region: str = "aws-global"
    debug: bool = False


def iam_settings(bootstrap_servers: str, options: Mapping[str, str]) -> IamSettings:
    """Read the options of a JAAS line under AWS's names.

    AWS's library ignores unknown options, and then logs in as another user. So an option close to a known one is
    refused, and any other unknown option is ignored.

    Raises:
        Untranslatable: An option is close to a known one, or only one of key id and secret is given.
    """
    for name in options:
        if (meant := misspelt_option(name, _OPTIONS)) is not None:
            raise Untranslatable(JAAS, f"has {name}, which AWS's login does not know: did you mean {meant}?")

    def value(name: str) -> str | None:
        return options.get(name) or None

    key, secret = value("awsRoleAccessKeyId"), value("awsRoleSecretAccessKey")
    if (key is None) != (secret is None):
        raise Untranslatable(JAAS, "has one of awsRoleAccessKeyId and awsRoleSecretAccessKey: give both, or neither")
    return IamSettings(
        region=broker_region(bootstrap_servers),
        profile=value("awsProfileName"),
        role_arn=value("awsRoleArn"),
        role_session_name=value("awsRoleSessionName") or "aws-msk-iam-auth",
        role_external_id=value("awsRoleExternalId"),
        role_access_key_id=key,
        role_secret_access_key=secret,
        role_session_token=value("awsRoleSessionToken"),
        sts_region=value("awsStsRegion") or "aws-global",
        debug=options.get("awsDebugCreds") == "true",
    )


def broker_region(bootstrap_servers: str) -> str | None:
    """Return the AWS region in the first broker's name that has one, as in MSK's names; None without one."""
    match = _REGION.search(bootstrap_servers.lower())
    return match[0] if match else None


def iam_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number of the JAAS line; a number below zero becomes zero.

    Raises:
        Untranslatable: The option is no whole number.
    """
    text = options.get(name, "").strip()
    if text and not text.isascii():
        raise Untranslatable(JAAS, f"has {name}, which is no whole number")
    try:
        return max(0, int(text)) if text else default
    except ValueError as exc:
        raise Untranslatable(JAAS, f"has {name}, which is no whole number") from exc
