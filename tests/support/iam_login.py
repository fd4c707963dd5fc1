"""Logins with AWS IAM as a file writes them, and how they are read."""

import base64

from lockstep_config.clients.iam import AWS_MSK_IAM, IAM_CLIENT_HANDLER, IAM_LOGIN_HANDLER, IAM_MODULE, IamSettings
from lockstep_config.clients.oauth import OAUTHBEARER_MODULE, TokenSettings
from lockstep_config.clients.sasl import read_login

BROKERS = ",".join(f"b-{n}.orders.ab12cd.c2.kafka.eu-central-1.amazonaws.com:9098" for n in (1, 2))


def msk(options: str = "", **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": BROKERS,
        "sasl.mechanism": AWS_MSK_IAM,
        "sasl.jaas.config": f"{IAM_MODULE} required {options};",
        "sasl.client.callback.handler.class": IAM_CLIENT_HANDLER,
        **more,
    }


def bearer(options: str = "", **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": BROKERS,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {options};",
        "sasl.login.callback.handler.class": IAM_LOGIN_HANDLER,
        **more,
    }


def tokens_of(properties: dict[str, str]) -> TokenSettings:
    tokens = read_login(properties).tokens
    assert isinstance(tokens, TokenSettings)
    return tokens


def iam_of(properties: dict[str, str]) -> IamSettings:
    cloud = tokens_of(properties).cloud
    assert isinstance(cloud, IamSettings)
    return cloud


def signed_url(token: str) -> str:
    """Return the URL that stands in an access token of AWS."""
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
