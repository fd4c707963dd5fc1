"""AWS IAM as a login to Amazon MSK: how a file writes it."""

import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from lockstep_config.clients.iam import (
    AWS_MSK_IAM,
    IAM_CLIENT_HANDLER,
    IAM_LOGIN_HANDLER,
    IAM_MODULE,
    IamSettings,
    broker_region,
)
from lockstep_config.clients.oauth import OAUTHBEARER_MODULE, TokenSettings
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.token_source import TokenSource, TokenUnavailable
from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.text.jaas import JAAS
from tests.support.iam_login import BROKERS, bearer, iam_of, msk, tokens_of
from tests.unit.config.conftest import MistakesOf


def why_not(properties: dict[str, str]) -> str:
    with pytest.raises(Untranslatable) as caught:
        read_login(properties)
    return f"{caught.value.key}: {caught.value}"


@pytest.mark.parametrize("written", [msk, bearer])
def test_iam_login_is_the_same_by_both_mechanisms(written: Callable[..., dict[str, str]]) -> None:
    options = (
        'awsProfileName="mirror" awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="s" awsRoleExternalId="x" '
        'awsRoleAccessKeyId="k" awsRoleSecretAccessKey="hush" awsRoleSessionToken="hush2" awsStsRegion="eu-west-1" '
        'awsDebugCreds="true" awsMaxRetries="7" awsMaxBackOffTimeMs="900"'
    )
    tokens = tokens_of(written(options))
    assert tokens.cloud == IamSettings(
        region="eu-central-1",
        profile="mirror",
        role_arn="arn:aws:iam::1:role/r",
        role_session_name="s",
        role_external_id="x",
        role_access_key_id="k",
        role_secret_access_key="hush",
        role_session_token="hush2",
        sts_region="eu-west-1",
        debug=True,
    )
    assert (tokens.retries, tokens.retry_longest_s, tokens.retry_for_s) == (7, 0.9, None)
    assert "hush" not in repr(tokens)
    assert pickle.loads(pickle.dumps(tokens)) == tokens  # noqa: S301  # settings travel to Spark's workers
    assert tokens_of(written()).cloud == IamSettings(region="eu-central-1")


def test_aws_also_names_its_class_and_kafka_its_default_for_the_client() -> None:
    java = "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler"
    for handler in (IAM_LOGIN_HANDLER, java):
        assert iam_of(bearer(**{"sasl.client.callback.handler.class": handler})).region == "eu-central-1"
    assert iam_of({k: v for k, v in bearer().items() if k != "sasl.jaas.config"}).region == "eu-central-1"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (msk('awsProfilename="p"'),
            f"{JAAS}: has awsProfilename, which AWS's login does not know: did you mean awsProfileName?"),
        (msk('awsRoleARN="p"'),
            f"{JAAS}: has awsRoleARN, which AWS's login does not know: did you mean awsRoleArn?"),
        (msk('awsRoleAccessKeyId="p"'), f"{JAAS}: has one of awsRoleAccessKeyId and awsRoleSecretAccessKey"),
        (msk('awsMaxRetries="many"'), f"{JAAS}: has awsMaxRetries, which is no whole number"),
        (bearer('awsMaxBackOffTimeMs="1.5"'), f"{JAAS}: has awsMaxBackOffTimeMs, which is no whole number"),
        (msk(**{JAAS: f"{OAUTHBEARER_MODULE} required;"}),
            f"{JAAS}: names the module {OAUTHBEARER_MODULE}, but sasl.mechanism AWS_MSK_IAM takes {IAM_MODULE}"),
        ({"sasl.mechanism": AWS_MSK_IAM},
            f"{JAAS}: is missing: AWS_MSK_IAM needs one, as in {IAM_MODULE} required;"),
        (msk(**{"sasl.mechanism": "SCRAM-SHA-512"}),
            f"sasl.client.callback.handler.class: is '{IAM_CLIENT_HANDLER}', which goes with "
            "sasl.mechanism=AWS_MSK_IAM, not with SCRAM-SHA-512: set that"),
        ({key: value for key, value in msk().items() if key != "sasl.mechanism"},
            "sasl.mechanism: is GSSAPI (Java's default, for none is set): the login is AWS's: set "
            "sasl.mechanism=AWS_MSK_IAM"),
        (msk(**{"sasl.client.callback.handler.class": "com.example.Own"}),
            "sasl.client.callback.handler.class: is 'com.example.Own': Java classes cannot run here"),
        (msk(**{"sasl.login.class": "com.example.Own"}), "sasl.login.class: is 'com.example.Own': Java classes"),
        (bearer(**{"sasl.login.callback.handler.class": "com.example.Own"}),
            "sasl.login.callback.handler.class: is 'com.example.Own': Java classes cannot run here; known are Kafka's"),
    ],
)  # fmt: skip  # a case a line or two
def test_iam_mistake_is_named(properties: dict[str, str], sentence: str) -> None:
    assert why_not(properties).startswith(sentence)


def test_options_that_are_nobodys_are_ignored_as_in_java() -> None:
    assert iam_of(msk('serviceName="kafka"')) == IamSettings(region="eu-central-1")


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        (BROKERS, "eu-central-1"),
        ("boot-ab12.c1.kafka-serverless.us-west-2.amazonaws.com:9098", "us-west-2"),
        ("b-1-public.demo.ab.c3.kafka.ap-southeast-3.amazonaws.com:9198", "ap-southeast-3"),
        ("b-1.demo.ab.c3.kafka.cn-northwest-1.amazonaws.com.cn:9098", "cn-northwest-1"),
        ("b-1.demo.ab.c3.kafka.us-gov-west-1.amazonaws.com:9098", "us-gov-west-1"),
        ("b-1.demo.ab.c3.kafka.us-isob-east-1.sc2s.sgov.gov:9098", "us-isob-east-1"),
        ("b-1.demo.ab.c3.kafka.eusc-de-east-1.amazonaws.eu:9098", "eusc-de-east-1"),
        ("localhost:9098,B-1.X.KAFKA.ME-SOUTH-1.AMAZONAWS.COM:9098", "me-south-1"),
        ("kafka-il-central-1.example.org:9098", "il-central-1"),
        ("kafka.example.org:9098", None),
        ("broker-east-1:9098", None),
        ("", None),
    ],
)
def test_iam_region_comes_from_the_broker_name(servers: str, region: str | None) -> None:
    assert broker_region(servers) == region


def test_iam_without_its_package_names_what_to_install(
    mistakes_of: MistakesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_config.clients.cloud_login.find_spec", lambda _: None)
    mistakes = mistakes_of(
        f"A.security.protocol=SASL_PLAINTEXT\nA.sasl.mechanism=AWS_MSK_IAM\nA.sasl.jaas.config={IAM_MODULE} required;\n"
    )
    assert len(mistakes) == 1
    assert "install lockstep-kafka[iam]" in mistakes[0]
    with pytest.raises(TokenUnavailable, match=r"lockstep-kafka\[iam\]"):
        TokenSource(TokenSettings(cloud=IamSettings(region="eu-west-1"))).token()


def test_iam_packages_are_not_loaded_without_an_iam_login() -> None:
    code = (
        "import sys; import lockstep_config.flow.client_settings, lockstep_config.loader.configuration; "
        "import lockstep_config.clients.token_source; "
        "sys.exit(', '.join(m for m in sys.modules if m.partition('.')[0] in ('boto3', 'botocore')) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
