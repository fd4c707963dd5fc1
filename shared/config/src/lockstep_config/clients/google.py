"""Logins to Google Cloud's Managed Service for Apache Kafka, by the class of Google's Java library. Pure: no network.

Google's handler takes no options: the application default credentials of the process are asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS

GOOGLE_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """The application default credentials: there is nothing to choose here. A value, as `IamSettings` is one."""


def google_settings(options: Mapping[str, str]) -> GoogleSettings:
    """Read the JAAS options beside Google's handler. Raises `Untranslatable` for each, because it would do nothing."""
    for name in options:
        raise Untranslatable(
            JAAS,
            f"has {name}, and Google's login has no options: it takes the application default credentials. "
            "Name a key file in GOOGLE_APPLICATION_CREDENTIALS instead",
        )
    return GoogleSettings()
