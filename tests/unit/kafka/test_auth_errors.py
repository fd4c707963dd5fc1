"""Words that librdkafka 2.16, aiokafka 0.14 and OpenSSL 3 had for it, and ours."""

import pytest

from lockstep_kafka.common.auth_errors import explain_unresolved_name, login_name, refused_login

USER = "user mirror (SCRAM-SHA-512)"


INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
VERIFY = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
NOT_OURS = (
    "the broker does not accept our certificate, or wants one (bad certificate): check ssl.keystore.location, and that "
    "the broker trusts who signed it"
)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (
            f"sasl_ssl://localhost:1/bootstrap: SASL authentication error: {INVALID} (after 973ms in state AUTH_REQ)",
            f"the broker refuses the login of {USER} ({INVALID}): check sasl.jaas.config, and the user there",
        ),
        (
            "SaslAuthenticationFailed: Authentication failed: Invalid username or password",
            f"the broker refuses the login of {USER} (Authentication failed: Invalid username or password): check "
            "sasl.jaas.config, and the user there",
        ),
        (
            f"{VERIFY}certificate has expired (_ssl.c:1006)",
            "the broker's certificate is not accepted (certificate has expired): renew the broker's certificate",
        ),
        (
            f"{VERIFY}Hostname mismatch, certificate is not valid for 'localhost'. (_ssl.c:1006)",
            "the broker's certificate is not accepted (Hostname mismatch, certificate is not valid for 'localhost'): "
            "reach the brokers by a name in their certificate (bootstrap.servers, advertised.listeners)",
        ),
        (
            f"{VERIFY}self-signed certificate in certificate chain (_ssl.c:1006)",
            "the broker's certificate is not accepted (self-signed certificate in certificate chain): put the "
            "authority that signed it into ssl.truststore.location",
        ),
        (
            "ssl://localhost:24552/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad "
            "certificate: SSL alert number 42 (after 121ms in state APIVERSION_QUERY)",
            NOT_OURS,
        ),
        ("[SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate (_ssl.c:2580)", NOT_OURS),
        (
            "the broker sent a frame that says it is 352518912 bytes long, where at most 268435456 were asked for",
            "one side speaks TLS and the other does not: check security.protocol and the port",
        ),
        (
            "localhost:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state X)",
            "localhost:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused",
        ),
        (
            "sasl_ssl://b-1:9098/1: SASL authentication error: [0f3a]: Access denied (after 312ms in state AUTH_REQ)",
            f"the broker refuses the login of {USER} ([0f3a]: Access denied): check that the IAM policy of these AWS "
            "credentials allows kafka-cluster:Connect on the cluster. Check the region too",
        ),
        ("no access token: https://idp/token gave no token", "no access token: https://idp/token gave no token"),
    ],
)
def test_auth_error_is_one_line_with_its_remedy(reason: str, sentence: str) -> None:
    assert refused_login(reason, USER) == sentence


def test_unresolved_advertised_name_differs_from_the_bootstrap_name() -> None:
    text = (
        "b-1.inside:9092/1: Failed to resolve 'b-1.inside:9092': Name or service not known (after 3ms in state CONNECT)"
    )
    sentence = explain_unresolved_name(text, "outside:9092")
    assert sentence is not None
    assert sentence.startswith("a broker is advertised as b-1.inside:9092, whose name is not known here (Name or")
    assert "advertised.listeners" in sentence
    assert explain_unresolved_name(text, "outside:9092, b-1.inside:9092") is None
    assert explain_unresolved_name("b-1.inside:9092/1: Connect to ipv4#10.0.0.1:9092 failed", "outside:9092") is None


def test_login_name_has_no_password() -> None:
    conf = {"sasl.mechanism": "PLAIN", "sasl.username": "mirror", "sasl.password": "hush"}
    assert login_name(conf) == "user mirror (PLAIN)"
    assert login_name({"sasl.mechanism": "OAUTHBEARER"}) == "the bearer of our token (OAUTHBEARER)"
    assert login_name({"security.protocol": "SSL"}) == ""
