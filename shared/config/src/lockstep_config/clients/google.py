"""Logins to Google Cloud's Managed Service for Apache Kafka, by the class of Google's Java library.

Google's handler takes no options: the application default credentials of the process are asked. This module is pure:
it sends no request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS

GOOGLE_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """A login with the application default credentials, which has no options. Equal settings may share a token."""


def google_settings(options: Mapping[str, str]) -> GoogleSettings:
    """Read the JAAS options of Google's login handler, which has none.

    Raises:
        Untranslatable: There is an option; it would have no effect.
    """
    for name in options:
        raise Untranslatable(
            JAAS,
            f"has {name}, and Google's login has no options: it takes the application default credentials. "
            "Name a key file in GOOGLE_APPLICATION_CREDENTIALS instead",
        )
    return GoogleSettings()
