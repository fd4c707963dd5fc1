"""Errors of logins and certificates as one line with a remedy.

librdkafka, OpenSSL and brokers each have words of their own for them. Some include how many milliseconds it took, so
the text of the same error is new each time.
"""

import re
from collections.abc import Mapping

from lockstep_state.kafka.librdkafka_errors import without_timing

NOT_VERIFIED = "certificate verify failed"

NOT_A_BROKER = (
    "an address in bootstrap.servers is a KRaft controller's, which serves no clients: give addresses of brokers (of "
    "their listeners, none of controller.listener.names)"
)
"""The error for a KRaft controller.

A controller answers ApiVersions as a broker does, but its answer lacks Metadata, which every broker has.
"""

_UNRESOLVED = re.compile(r"Failed to resolve '(?P<address>[^']+)': (?P<reason>[^(]+)")
_PLACE = re.compile(r"^\w+://\S+: ")
_SOURCE_LINE = re.compile(r" \(_ssl\.c:\d+\)")
_VERIFIED = re.compile(rf".*?{NOT_VERIFIED}: (?P<reason>.*?)\.?$", re.DOTALL)
_NOT_LET_IN = re.compile(r".*?(?:SaslAuthenticationFailed: |SASL authentication error: )(?P<reason>.*)$", re.DOTALL)
_ALERT = re.compile(
    r"alert (bad certificate|certificate (?:required|expired|unknown)|unknown ca|handshake failure)",
    re.IGNORECASE,
)
_ALERT_AS_A_LENGTH = re.compile(r"says it is 3525\d{5} bytes long")
"""A TLS alert that was read as the length of an answer (`frame_protocol.py`)."""

_CERTIFICATES = (
    ("expired", "renew the broker's certificate"),
    ("not yet valid", "check the clocks of both hosts"),
    ("mismatch", "reach the brokers by a name in their certificate (bootstrap.servers, advertised.listeners)"),
    ("self-signed", "put the authority that signed it into ssl.truststore.location"),
    ("unable to get", "put the authority that signed it into ssl.truststore.location"),
)


def refused_login(message: str, login_text: str = "") -> str:
    """Return an error text in our words if it is about TLS or SASL, otherwise without its place and timing.

    Args:
        message: The error of librdkafka, OpenSSL or a broker.
        login_text: The user of the login (`login_name`).
    """
    text = _SOURCE_LINE.sub("", without_timing(_PLACE.sub("", message))).strip()
    if (match := _NOT_LET_IN.match(text)) is not None:
        login = f" of {login_text}" if login_text else ""
        if "Access denied" in match["reason"]:  # the text of Amazon MSK with IAM
            return (
                f"the broker refuses the login{login} ({match['reason']}): check that the IAM policy of these AWS "
                "credentials allows kafka-cluster:Connect on the cluster. Check the region too"
            )
        return f"the broker refuses the login{login} ({match['reason']}): check sasl.jaas.config, and the user there"
    if (match := _VERIFIED.match(text)) is not None:
        reason = match["reason"]
        advice = next((advice for words, advice in _CERTIFICATES if words in reason), "check ssl.truststore.location")
        return f"the broker's certificate is not accepted ({reason}): {advice}"
    if (match := _ALERT.search(text)) is not None:
        return (
            f"the broker does not accept our certificate, or wants one ({match[1].lower()}): check "
            "ssl.keystore.location, and that the broker trusts who signed it"
        )
    if _ALERT_AS_A_LENGTH.search(text) or "wrong version number" in text:
        return "one side speaks TLS and the other does not: check security.protocol and the port"
    return text


def explain_unresolved_name(message: str, bootstrap: str) -> str | None:
    """Return a sentence if `message` says that an advertised broker name cannot be resolved, otherwise None.

    A name in `bootstrap` does not count: the cluster did not advertise it.
    """
    match = _UNRESOLVED.search(message)
    if match is None or match["address"] in (address.strip() for address in bootstrap.split(",")):
        return None
    return (
        f"a broker is advertised as {match['address']}, whose name is not known here ({match['reason'].strip()}): "
        "set that broker's advertised.listeners to an address that is known here"
    )


def login_name(conf: Mapping[str, object]) -> str:
    """Return the user of these settings of librdkafka as `user NAME (MECHANISM)`, or "" without a login."""
    mechanism, user = conf.get("sasl.mechanism"), conf.get("sasl.username")
    if mechanism is None:
        return ""
    return f"user {user} ({mechanism})" if user else f"the bearer of our token ({mechanism})"
