"""OAuth logins, in Kafka's spelling and in Strimzi's."""

import pickle

import pytest

from lockstep_config.clients.oauth import OAUTHBEARER_MODULE, STRIMZI_HANDLER, RefreshRule, TokenSettings
from lockstep_config.clients.sasl import read_login
from lockstep_config.keys.client_keys import Untranslatable

URL = "https://idp.example/token"
BASE = {"sasl.mechanism": "OAUTHBEARER"}


def kafkas(options: str = "", **properties: str) -> TokenSettings:
    client = {**BASE, **{f"sasl.{name.replace('__', '.')}": value for name, value in properties.items()}}
    if options:
        client["sasl.jaas.config"] = f"{OAUTHBEARER_MODULE} required {options};"
    tokens = read_login(client).tokens
    assert isinstance(tokens, TokenSettings)
    return tokens


def strimzis(options: str) -> TokenSettings:
    return kafkas(
        **{
            "login__callback__handler__class": STRIMZI_HANDLER,
            "jaas__config": f"{OAUTHBEARER_MODULE} required {options};",
        }
    )


def test_kafkas_client_credentials_stand_in_the_jaas_line() -> None:
    login = kafkas(
        'clientId="mirror" clientSecret="hush" scope="a b" extension_logicalCluster="lkc-1"',
        oauthbearer__token__endpoint__url=URL,
    )
    assert (login.endpoint, login.client_id, login.client_secret) == (URL, "mirror", "hush")
    assert login.form == (("grant_type", "client_credentials"), ("scope", "a b"))
    assert login.extensions == (("logicalCluster", "lkc-1"),)
    assert not login.encode_header
    assert "hush" not in repr(login)
    assert pickle.loads(pickle.dumps(login)) == login  # noqa: S301  # settings travel to Spark's workers


def test_kafkas_own_properties_count_more_than_the_jaas_line() -> None:
    login = kafkas(
        'clientId="old" clientSecret="old" scope="old"',
        **{
            "oauthbearer__token__endpoint__url": URL,
            "oauthbearer__client__credentials__client__id": "new",
            "oauthbearer__client__credentials__client__secret": "hush",
            "oauthbearer__scope": "all",
            "oauthbearer__header__urlencode": "true",
            "login__connect__timeout__ms": "1500",
            "login__refresh__window__factor": "0.6",
            "login__refresh__buffer__seconds": "5",
        },
    )
    assert (login.client_id, login.client_secret, login.form[-1]) == ("new", "hush", ("scope", "all"))
    assert login.encode_header
    assert login.connect_timeout_s == 1.5
    assert login.refresh == RefreshRule(window_factor=0.6, buffer_s=5)


def test_kafkas_token_may_lie_in_a_file() -> None:
    assert kafkas(oauthbearer__token__endpoint__url="file:///run/a%20b/token").token_file == "/run/a b/token"


def test_strimzis_client_credentials() -> None:
    login = strimzis(
        f'oauth.token.endpoint.uri="{URL}" oauth.client.id="mirror" oauth.client.secret="hush" oauth.scope="s" '
        'oauth.audience="kafka" oauth.ssl.endpoint.identification.algorithm="" oauth.http.retries="2" '
        'oauth.http.retry.pause.millis="300" oauth.connect.timeout.seconds="5" oauth.sasl.extension.pool="p"'
    )
    assert login.form == (("grant_type", "client_credentials"), ("scope", "s"), ("audience", "kafka"))
    assert (login.client_id, login.client_secret, login.encode_header) == ("mirror", "hush", True)
    assert not login.tls.check_hostname
    assert (login.retries, login.retry_first_s, login.retry_for_s) == (2, 0.3, None)
    assert (login.connect_timeout_s, login.read_timeout_s) == (5.0, 60.0)
    assert login.extensions == (("pool", "p"),)


@pytest.mark.parametrize(
    ("options", "form", "files", "secret"),
    [
        ('oauth.refresh.token="r"',
            [("grant_type", "refresh_token"), ("client_id", "m"), ("refresh_token", "r")], [], None),
        ('oauth.refresh.token.location="/r"', [("grant_type", "refresh_token"), ("client_id", "m")],
            [("refresh_token", "/r")], None),
        ('oauth.password.grant.username="u" oauth.password.grant.password="p"',
            [("grant_type", "password"), ("username", "u"), ("password", "p")], [], ""),
        ('oauth.client.assertion.location="/a"', [
            ("grant_type", "client_credentials"), ("client_id", "m"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ], [("client_assertion", "/a")], None),
    ],
)  # fmt: skip  # a case a line or two
def test_strimzis_other_grants(
    options: str, form: list[tuple[str, str]], files: list[tuple[str, str]], secret: str | None
) -> None:
    login = strimzis(f'oauth.token.endpoint.uri="{URL}" oauth.client.id="m" {options}')
    assert (list(login.form), list(login.form_files), login.client_secret) == (form, files, secret)


def test_strimzis_tokens_that_are_there() -> None:
    assert strimzis('oauth.access.token="t"').token == "t"
    assert strimzis('oauth.access.token="t" oauth.access.token.location="/t"').token_file == "/t"


@pytest.mark.parametrize(
    ("properties", "options", "key", "sentence"),
    [
        ({}, "", "sasl.oauthbearer.token.endpoint.url", "is missing: say where"),
        ({}, 'unsecuredLoginStringClaim_sub="x"', "sasl.oauthbearer.token.endpoint.url", "JAAS options unsec"),
        ({"sasl.oauthbearer.token.endpoint.url": URL}, "",
            "sasl.oauthbearer.client.credentials.client.id", "is missing"),
        ({"sasl.oauthbearer.token.endpoint.url": "ftp://x"}, "", "sasl.oauthbearer.token.endpoint.url", "is no https"),
        ({"sasl.login.callback.handler.class": "com.example.Login"}, "",
            "sasl.login.callback.handler.class", "is 'com.example.Login': Java classes cannot run here"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever"}, "",
            "sasl.oauthbearer.jwt.retriever.class", "is JwtBearerJwtRetriever, which is not supported"),
        ({"sasl.login.refresh.window.factor": "2"}, "", "sasl.login.refresh.window.factor", "is 2: it takes 0.5 to 1"),
        ({"sasl.oauthbearer.token.endpoint.url": URL}, 'clientId="a" clientSecret="hush" extension_auth="x"',
            "sasl.jaas.config", "has extension_auth, which is no SASL extension"),
        ({"sasl.oauthbearer.token.endpoint.url": URL}, 'clientId="a" clientSecret="hush" ssl.truststore.type="X" '
            'ssl.truststore.location="/x"', "sasl.jaas.config", "has ssl.truststore.type, which is X"),
        ({}, f'oauth.token.endpoint.uri="{URL}"', "sasl.jaas.config", 'has no oauth.client.id="..."'),
        ({}, f'oauth.token.endpoint.uri="{URL}" oauth.client.id="x"', "sasl.jaas.config", "has a token endpoint"),
        ({}, 'oauth.client.id="x"', "sasl.jaas.config", "has neither oauth.token.endpoint.uri nor"),
        ({}, 'oauth.token.endpoint.uri="https://u:hush@x/" oauth.client.id="x"', "sasl.jaas.config", "has a user"),
    ],
)  # fmt: skip  # a case a line or two
def test_oauth_setting_without_support_is_named(
    properties: dict[str, str], options: str, key: str, sentence: str
) -> None:
    jaas = {"sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {options};"} if options else {}
    with pytest.raises(Untranslatable) as raised:
        read_login({**BASE, **properties, **jaas})
    assert raised.value.key == key
    assert str(raised.value).startswith(sentence)
    assert "hush" not in str(raised.value)
