"""The token that AWS IAM logs in with: whose credentials sign it, for which region, until when.

It is checked by AWS's published algorithm (Signature Version 4, query string form), written here anew.
"""

import datetime
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import botocore.auth
import pytest

from lockstep_config.clients.iam import IAM_CLIENT_HANDLER, IAM_LOGIN_HANDLER, IAM_MODULE, IamSettings
from lockstep_config.clients.iam_signer import iam_token
from lockstep_config.clients.oauth import OAUTHBEARER_MODULE
from lockstep_config.clients.token_source import TokenSource, TokenUnavailable, shared_token_source
from lockstep_config.flow.client_settings import source_consumer, target_admin, wire_security
from tests.support.iam_login import BROKERS, bearer, iam_of, msk, signed_url, tokens_of

from .conftest import A_TO_B, LoadText

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
MOMENT = datetime.datetime(2026, 3, 14, 15, 9, 26, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        *("PROFILE", "REGION", "DEFAULT_REGION", "ROLE_ARN", "WEB_IDENTITY_TOKEN_FILE", "ACCESS_KEY_ID"),
        *("SECRET_ACCESS_KEY", "SESSION_TOKEN", "CONTAINER_CREDENTIALS_RELATIVE_URI", "CONTAINER_CREDENTIALS_FULL_URI"),
    ):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    def now(remove_tzinfo: bool = True) -> datetime.datetime:
        return MOMENT.replace(tzinfo=None) if remove_tzinfo else MOMENT

    monkeypatch.setattr(botocore.auth, "get_current_datetime", now)


def signature_by_aws_rules(url: str, secret: str) -> str:
    """Of a presigned GET that carries no body; the agent is added after it is signed."""
    parts = urlsplit(url)
    fields = dict(parse_qsl(parts.query, keep_blank_values=True))
    algorithm, moment, scope = (fields[f"X-Amz-{name}"] for name in ("Algorithm", "Date", "Credential"))
    scope = scope.partition("/")[2]
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(fields.items())
        if name not in ("X-Amz-Signature", "User-Agent")
    )
    request = "\n".join(["GET", "/", query, f"host:{parts.netloc}", "", "host", hashlib.sha256(b"").hexdigest()])
    to_sign = "\n".join([algorithm, moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def test_a_file_with_both_is_read_and_every_client_has_the_token(load_text: LoadText, credentials: None) -> None:
    loaded = load_text(
        f"A.bootstrap.servers = {BROKERS}\nA.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = AWS_MSK_IAM\n"
        f"A.sasl.jaas.config = {IAM_MODULE} required;\nA.sasl.client.callback.handler.class = {IAM_CLIENT_HANDLER}\n"
        "B.bootstrap.servers = boot-x.c1.kafka-serverless.us-east-2.amazonaws.com:9098\n"
        f"B.security.protocol = SASL_PLAINTEXT\nB.sasl.mechanism = OAUTHBEARER\n"
        f"B.sasl.jaas.config = {OAUTHBEARER_MODULE} required;\n"
        f"B.sasl.login.callback.handler.class = {IAM_LOGIN_HANDLER}\n"
        f"B.sasl.client.callback.handler.class = {IAM_LOGIN_HANDLER}\n"
    )
    for conf, alias, region in (
        (source_consumer(loaded.flow(A_TO_B), "x"), "A", "eu-central-1"),
        (target_admin(loaded.flow(A_TO_B)), "B", "us-east-2"),
    ):
        assert conf["sasl.mechanism"] == "OAUTHBEARER"
        text, _, principal, extensions = conf["oauth_cb"]("")
        assert (principal, extensions) == ("", {})
        url = signed_url(text)
        assert url.startswith(f"https://kafka.{region}.amazonaws.com/?Action=kafka-cluster%3AConnect&")
        assert parse_qs(urlsplit(url).query)["X-Amz-Signature"] == [signature_by_aws_rules(url, SECRET)]
        login = wire_security(loaded.clusters[alias])["login"]
        assert shared_token_source(login.tokens).token().text == text


def test_fixed_credentials_and_a_fixed_time_give_one_token(credentials: None, fixed: None) -> None:
    text, until = iam_token(IamSettings(region="eu-central-1"))
    assert until == MOMENT.timestamp() + 900
    url = signed_url(text)
    query = parse_qs(urlsplit(url).query)
    agent = query.pop("User-Agent")
    assert agent[0].startswith("aws-msk-iam-sasl-signer-python/")
    assert query == {
        "Action": ["kafka-cluster:Connect"],
        "X-Amz-Algorithm": ["AWS4-HMAC-SHA256"],
        "X-Amz-Credential": [f"{KEY}/20260314/eu-central-1/kafka-cluster/aws4_request"],
        "X-Amz-Date": ["20260314T150926Z"],
        "X-Amz-Expires": ["900"],
        "X-Amz-SignedHeaders": ["host"],
        "X-Amz-Signature": [signature_by_aws_rules(url, SECRET)],
    }
    assert "=" not in text
    assert iam_token(IamSettings(region="eu-central-1")) == (text, until)
    assert signature_by_aws_rules(url, SECRET) != signature_by_aws_rules(url, SECRET + "x")


def test_a_sessions_token_is_signed_with_it(credentials: None, fixed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of/the+session==")
    url = signed_url(iam_token(IamSettings(region="us-gov-west-1"))[0])
    query = parse_qs(urlsplit(url).query)
    assert query["X-Amz-Security-Token"] == ["of/the+session=="]
    assert query["X-Amz-Signature"] == [signature_by_aws_rules(url, SECRET)]


def test_the_region_may_come_from_the_environment_or_the_profile(
    credentials: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(TokenUnavailable, match="set AWS_REGION"):
        iam_token(IamSettings())
    (tmp_path / "config").write_text("[default]\nregion = sa-east-1\n")
    assert "kafka.sa-east-1." in signed_url(iam_token(IamSettings())[0])
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert "kafka.eu-north-1." in signed_url(iam_token(IamSettings())[0])
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert "kafka.eu-west-2." in signed_url(iam_token(IamSettings())[0])
    assert "kafka.ca-central-1." in signed_url(iam_token(IamSettings(region="ca-central-1"))[0])  # the broker's own


def test_iam_profile_is_used_without_fallback(credentials: None, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[mirror]\naws_access_key_id = OTHER\naws_secret_access_key = s3\n")
    url = signed_url(iam_token(IamSettings(region="eu-west-1", profile="mirror"))[0])
    assert parse_qs(urlsplit(url).query)["X-Amz-Credential"][0].startswith("OTHER/")
    assert parse_qs(urlsplit(url).query)["X-Amz-Signature"] == [signature_by_aws_rules(url, "s3")]
    with pytest.raises(TokenUnavailable, match=r"of the profile elsewhere cannot be had: .*elsewhere"):
        iam_token(IamSettings(region="eu-west-1", profile="elsewhere"))


def test_iam_without_credentials_is_named() -> None:
    with pytest.raises(TokenUnavailable, match="no AWS credentials of the usual chain: set AWS_ACCESS_KEY_ID"):
        iam_token(IamSettings(region="eu-west-1"))


def test_a_token_serves_until_it_is_time_for_another(credentials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [MOMENT]
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: now[0].replace(tzinfo=None))
    source = TokenSource(tokens_of(msk()), lambda: now[0].timestamp(), chance=lambda: 0.0)
    token = source.token()
    assert token.until == MOMENT.timestamp() + 900
    now[0] += datetime.timedelta(seconds=599)
    assert source.token() is token
    now[0] += datetime.timedelta(seconds=2)
    renewed = source.token()
    assert renewed.until == now[0].timestamp() // 1 + 900
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    now[0] += datetime.timedelta(seconds=700)
    slept: list[float] = []
    source._sleep = slept.append
    assert source.token() is renewed, "while it is good"
    assert slept == [0.5, 1.0, 2.0], "as often as AWS's library tries"


class Sts(ThreadingHTTPServer):
    """Notes what it is asked, and answers as the Security Token Service."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[dict[str, list[str]]] = []
        self.signers: list[str] = []
        self.refuse = False


class Answering(BaseHTTPRequestHandler):
    server: Sts

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form)
        self.server.signers.append(self.headers["Authorization"])
        action = form["Action"][0]
        inner = (
            "<Arn>arn:aws:sts::1:assumed-role/r/s</Arn><UserId>u</UserId><Account>1</Account>"
            if action == "GetCallerIdentity"
            else "<Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>of-role</SecretAccessKey>"
            "<SessionToken>st</SessionToken><Expiration>2026-03-14T16:09:26Z</Expiration></Credentials>"
        )
        body = f"<{action}Response><{action}Result>{inner}</{action}Result></{action}Response>"
        if self.server.refuse:
            body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"
        self.send_response(403 if self.server.refuse else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    with Sts() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def test_a_role_is_assumed_and_its_credentials_sign(
    sts: Sts, credentials: None, caplog: pytest.LogCaptureFixture
) -> None:
    settings = iam_of(
        msk('awsRoleArn="arn:aws:iam::1:role/r" awsRoleExternalId="ours" awsStsRegion="eu-west-1" awsDebugCreds=true')
    )
    with caplog.at_level("INFO", "lockstep_config.clients.iam_signer"):
        url = signed_url(iam_token(settings)[0])
    query = parse_qs(urlsplit(url).query)
    assert query["X-Amz-Credential"][0].startswith("ROLE/")
    assert query["X-Amz-Security-Token"] == ["st"]
    assert query["X-Amz-Signature"] == [signature_by_aws_rules(url, "of-role")]
    (asked, identity), (by, by_role) = sts.asked, sts.signers
    assert (asked["RoleArn"], asked["RoleSessionName"], asked["ExternalId"]) == (
        ["arn:aws:iam::1:role/r"], ["aws-msk-iam-auth"], ["ours"],
    )  # fmt: skip
    assert f"Credential={KEY}/" in by
    assert "/eu-west-1/sts/" in by
    assert identity["Action"] == ["GetCallerIdentity"]
    assert "Credential=ROLE/" in by_role
    assert "the AWS credentials are those of arn:aws:sts::1:assumed-role/r/s" in caplog.text


def test_a_role_may_be_assumed_with_keys_of_the_line(sts: Sts) -> None:
    options = "awsRoleSessionName=mirror awsRoleAccessKeyId=LINE awsRoleSecretAccessKey=hush"
    iam_token(iam_of(bearer(f'awsRoleArn="arn:aws:iam::1:role/r" {options}')))
    assert sts.asked[0]["RoleSessionName"] == ["mirror"]
    assert "Credential=LINE/" in sts.signers[0]
    assert "/aws-global/sts/" in sts.signers[0], "which botocore signs as us-east-1 where the service is AWS's own"


def test_iam_refused_role_is_named_without_fallback(sts: Sts, credentials: None) -> None:
    sts.refuse = True
    with pytest.raises(TokenUnavailable, match=r"of the role arn:aws:iam::1:role/r cannot be had: .*AccessDenied"):
        iam_token(iam_of(msk('awsRoleArn="arn:aws:iam::1:role/r"')))


def test_iam_token_does_not_show_the_secret(credentials: None) -> None:
    token = TokenSource(tokens_of(msk())).token()
    assert token.text not in repr(token)
    assert json.dumps(SECRET)[1:-1] not in signed_url(token.text)
