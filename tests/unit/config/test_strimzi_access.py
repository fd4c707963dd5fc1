"""`tls` and `authentication` of a resource, and the secrets they name."""

import pytest

from lockstep_config.clients.oauth import TokenSettings
from lockstep_config.clients.sasl import Credentials, read_login
from lockstep_config.strimzi.resource import read_resource
from tests.support.mirror_maker_2_resources import old
from tests.support.strimzi_resources import Resources, certificate_and_key

SECRET = "${strimzisecrets:kafka/"
CLIENT_CERTIFICATE = "authentication: {type: tls, certificateAndKey: {secretName: me, certificate: c.crt, key: k.key}}"
CUSTOM = "authentication: {type: custom, sasl: true, config: {sasl.mechanism: PLAIN, security.protocol: X}}"
PASSWORD = "authentication: {type: plain, username: x, passwordSecret: {secretName: pw, password: password}}"


def access(lines: str) -> str:
    """A resource whose source has these fields."""
    return old().replace("bootstrapServers: a:9092", "bootstrapServers: a:9092\n    " + lines)


def of_source(resources: Resources, lines: str) -> dict[str, str]:
    entries = resources.entries(access(lines))
    return {key.removeprefix("A."): value for key, value in entries.items() if key.startswith(("A.s", "A.ss"))}


@pytest.mark.parametrize(
    ("lines", "entries"),
    [
        ("tls:", {}),
        ("tls: {}", {"security.protocol": "SSL"}),
        ("tls: {trustedCertificates: []}", {"security.protocol": "SSL"}),
        (
            "tls: {trustedCertificates: [{secretName: a, certificate: ca.crt}, {secretName: b, pattern: '*.crt'}]}",
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": f"{SECRET}a:ca.crt}}\n{SECRET}b:*.crt}}",
            },
        ),
        (
            f"tls: {{}}\n    {CLIENT_CERTIFICATE}",
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": f"{SECRET}me:c.crt}}",
                "ssl.keystore.key": f"{SECRET}me:k.key}}",
            },
        ),
        (f"tls: {{}}\n    {CUSTOM}", {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}),
    ],
)
def test_tls_and_authentication_become_client_properties(
    resources: Resources, lines: str, entries: dict[str, str]
) -> None:
    assert of_source(resources, lines) == entries


def test_custom_authentication_ignores_other_keys_with_a_note(resources: Resources) -> None:
    resource = access(f"tls: {{}}\n    {CUSTOM}").encode()
    notes = [note.message for note in read_resource(resource, resources.file).notes]
    assert notes == ["is ignored, as Strimzi does: a custom authentication takes ssl.keystore.* and sasl.*"]


def test_strimzi_trusts_all_listed_certificates(resources: Resources) -> None:
    certificate, key = certificate_and_key()
    resources.secret("a", ca__crt=certificate)
    resources.secret("b", **{"1__crt": certificate, "2__crt": certificate, "ca__key": key, "ca__p12": "binary"})
    lines = "tls: {trustedCertificates: [{secretName: a, certificate: ca.crt}, {secretName: b, pattern: '*.crt'}]}"
    (settings,) = resources.load(access(lines)).flows
    pem = settings.source.properties["ssl.truststore.certificates"]
    assert pem.count("BEGIN CERTIFICATE") == 3
    assert "PRIVATE KEY" not in pem


def test_watched_files_include_those_of_secrets(resources: Resources) -> None:
    resources.secret("a", **{"1__crt": certificate_and_key()[0], "2__crt": certificate_and_key()[0]})
    loaded = resources.load(access("tls: {trustedCertificates: [{secretName: a, pattern: '*.crt'}]}"))
    assert loaded.sources.files >= {resources.file, *(resources.secrets / "a" / name for name in ("1.crt", "2.crt"))}


@pytest.mark.parametrize(
    ("kind", "mechanism"), [("plain", "PLAIN"), ("scram-sha-256", "SCRAM-SHA-256"), ("scram-sha-512", "SCRAM-SHA-512")]
)
@pytest.mark.parametrize(("tls", "protocol"), [("", "SASL_PLAINTEXT"), ("tls: {}\n    ", "SASL_SSL")])
def test_password_of_a_secret_becomes_credentials(
    resources: Resources, kind: str, mechanism: str, tls: str, protocol: str
) -> None:
    resources.secret("pw", password="hunter2\n")
    lines = (
        f"{tls}authentication: {{type: {kind}, username: me, passwordSecret: {{secretName: pw, password: password}}}}"
    )
    (settings,) = resources.load(access(lines)).flows
    assert read_login(settings.source.properties) == Credentials(mechanism, "me", "hunter2")
    assert settings.source.properties["security.protocol"] == protocol
    assert "hunter2" not in repr(settings)


def test_a_user_with_quotes_is_one_user(resources: Resources) -> None:
    resources.secret("pw", password="x")
    lines = (
        'authentication: {type: plain, username: "a\\"b\\\\c", passwordSecret: {secretName: pw, password: password}}'
    )
    (settings,) = resources.load(access(lines)).flows
    assert read_login(settings.source.properties) == Credentials("PLAIN", 'a"b\\c', "x")


def options(resources: Resources, lines: str) -> list[str]:
    entries = of_source(resources, f"authentication: {{type: oauth, {lines}}}")
    assert entries["sasl.mechanism"] == "OAUTHBEARER"
    module, required, *rest = entries["sasl.jaas.config"].removesuffix(";").split(" ")
    assert (module.rpartition(".")[2], required) == ("OAuthBearerLoginModule", "required")
    return rest


SECRETS = {"clientSecret": "oauth.client.secret", "refreshToken": "oauth.refresh.token"}


@pytest.mark.parametrize("proof", SECRETS)
def test_oauth_with_a_token_endpoint(resources: Resources, proof: str) -> None:
    lines = (
        f"clientId: me, {proof}: {{secretName: s, key: k}}, tokenEndpointUri: 'https://x/t', scope: any, audience: y"
    )
    assert options(resources, lines) == [
        'oauth.client.id="me"',
        'oauth.token.endpoint.uri="https://x/t"',
        'oauth.scope="any"',
        'oauth.audience="y"',
        f'{SECRETS[proof]}="{SECRET}s:k}}"',
    ]


def test_oauth_with_a_given_token(resources: Resources) -> None:
    assert options(resources, "accessToken: {secretName: s, key: k}") == [f'oauth.access.token="{SECRET}s:k}}"']
    assert options(resources, "accessTokenLocation: /var/token") == ['oauth.access.token.location="/var/token"']


def test_oauth_is_understood_by_the_clients(resources: Resources) -> None:
    resources.secret("s", k="hunter2\n")
    resources.secret("ca", **{"1__crt": certificate_and_key()[0], "2__crt": certificate_and_key()[0]})
    lines = (
        "tls: {}\n    authentication: {type: oauth, clientId: me, clientSecret: {secretName: s, key: k}, "
        "tokenEndpointUri: 'https://x/t', tlsTrustedCertificates: [{secretName: ca, pattern: '*.crt'}]}"
    )
    (settings,) = resources.load(access(lines)).flows
    login = read_login(settings.source.properties).tokens
    assert isinstance(login, TokenSettings)
    assert (login.endpoint, login.client_id, login.client_secret) == ("https://x/t", "me", "hunter2")
    assert (login.tls.trusted_pem or "").count("BEGIN CERTIFICATE") == 2
    assert "hunter2" not in repr(settings)


def test_oauths_further_settings(resources: Resources) -> None:
    assert options(
        resources,
        "accessToken: {secretName: s, key: k}, disableTlsHostnameVerification: true, accessTokenIsJwt: false, "
        "maxTokenExpirySeconds: 60, connectTimeoutSeconds: 5, readTimeoutSeconds: 6, httpRetries: 2, "
        "httpRetryPauseMs: 100, includeAcceptHeader: false, saslExtensions: {a: b}, "
        "tlsTrustedCertificates: [{secretName: ca, pattern: '*.crt'}]",
    ) == [
        'oauth.max.token.expiry.seconds="60"',
        'oauth.connect.timeout.seconds="5"',
        'oauth.read.timeout.seconds="6"',
        'oauth.http.retries="2"',
        'oauth.http.retry.pause.millis="100"',
        'oauth.ssl.endpoint.identification.algorithm=""',
        'oauth.access.token.is.jwt="false"',
        'oauth.include.accept.header="false"',
        'oauth.sasl.extension.a="b"',
        f'oauth.access.token="{SECRET}s:k}}"',
        'oauth.ssl.truststore.type="PEM"',
        f'oauth.ssl.truststore.certificates="{SECRET}ca:*.crt}}"',
    ]


def test_certificates_in_a_jaas_line_stay_on_one(resources: Resources) -> None:
    from lockstep_config.text.config_providers import read_providers, resolved
    from lockstep_config.text.properties import Entry

    resources.secret("ca", ca__crt=certificate_and_key()[0])
    entry = Entry("A.sasl.jaas.config", 'X required c="${s:ca:*.crt}";')
    top = {
        "config.providers": Entry("config.providers", "s"),
        "config.providers.s.class": Entry(
            "config.providers.s.class", "io.strimzi.kafka.KubernetesSecretConfigProvider"
        ),
    }
    providers, _ = read_providers(top, resources.file, resources.environment)
    settled, problems = resolved(entry, providers, resources.file)
    assert problems == []
    assert "\n" not in settled.value
    assert "-----END CERTIFICATE-----" in settled.value


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("authentication: {}", "authentication.type: is missing: say which: tls, scram-sha-256"),
        ("authentication: {type: kerberos}", "authentication.type: is 'kerberos': it takes tls, scram-sha-256"),
        ("authentication: {type: scram-sha512}", "did you mean scram-sha-512?"),
        ("authentication: {type: tls}", "authentication.certificateAndKey: is missing: type tls needs the secret"),
        ("authentication: {type: plain}", "authentication.username: is missing: type plain needs it"),
        ("authentication: {type: plain}", "authentication.passwordSecret: is missing: type plain needs it, with"),
        ("authentication: {type: plain, username: x, passwordSecret: {secretName: y}}", "Secret.password: is missing"),
        ("authentication: {type: oauth}", "type: is oauth, which needs accessToken, or else also tokenEndpointUri and"),
        ("authentication: {type: oauth, clientId: x, tokenEndpointUri: y}", "or else also clientSecret, refreshToken,"),
        ("authentication: {type: oauth, connectTimeoutSeconds: 0}", "the least it may be is 1"),
        ("tls: {trustedCertificates: [{secretName: a}]}", "trustedCertificates[0]: needs certificate or pattern"),
        ("tls: {trustedCertificates: [{secretName: a, certificate: b, pattern: c}]}", "has both certificate and"),
        ("tls: {trustedCertificates: [{certificate: b}]}", "trustedCertificates[0].secretName: is missing: name the"),
        ("tls: {trustedCertificates: [ca.crt]}", "trustedCertificates[0]: is a text, but takes a mapping"),
        ("tls: true", "tls: is true or false, but takes a mapping"),
    ],
)
def test_mistake_in_tls_or_authentication_is_refused(resources: Resources, lines: str, said: str) -> None:
    mistakes = resources.mistakes(access(lines))
    assert any(said in mistake for mistake in mistakes), mistakes


def test_strimzi_field_of_another_authentication_type_is_unused(resources: Resources) -> None:
    certificate, key = certificate_and_key()
    resources.secret("me", c__crt=certificate, k__key=key)
    remarks = resources.remarks(access("tls: {}\n    " + CLIENT_CERTIFICATE.replace("tls,", "tls, username: x,")))
    assert any("username: has no effect: type tls does not use it" in remark for remark in remarks)


def test_a_client_certificate_without_tls_is_not_shown_to_anybody(resources: Resources) -> None:
    remarks = resources.remarks(access(CLIENT_CERTIFICATE))
    assert any("is spoken to in the clear, as Strimzi does" in remark for remark in remarks)


def test_a_missing_secret_is_one_line_with_secret_key_and_folder(resources: Resources) -> None:
    lines = "tls: {trustedCertificates: [{secretName: nowhere, certificate: ca.crt}]}"
    (mistake,) = resources.mistakes(access(lines))
    assert f"there is no secret 'nowhere' (for its key 'ca.crt'): {resources.secrets}/nowhere is no folder" in mistake
    assert "--secrets-dir" in mistake
    resources.secret("nowhere", other="x")
    (mistake,) = resources.mistakes(access(lines))
    assert f"the secret 'nowhere' has no key 'ca.crt': there is no such file in {resources.secrets}/nowhere" in mistake
    (mistake,) = resources.mistakes(access(lines.replace("certificate: ca.crt", "pattern: '*.crt'")))
    assert f"has no key that matches '*.crt': looked in {resources.secrets}/nowhere, it has other" in mistake


@pytest.mark.parametrize("name", ["..", "a/../../b", "/etc", "."])
def test_a_secrets_name_leads_nowhere_else(resources: Resources, name: str) -> None:
    (resources.secrets.parent / "passwd").write_text("x")
    lines = f"authentication: {{type: plain, username: x, passwordSecret: {{secretName: '{name}', password: passwd}}}}"
    mistakes = resources.mistakes(access(lines))
    assert any("is no name of a secret, of a namespace, or of a key in one" in mistake for mistake in mistakes), (
        mistakes
    )


def test_a_namespace_may_have_a_folder_of_its_own(resources: Resources) -> None:
    resources.secret("pw", password="of-nobody")
    (settings,) = resources.load(access(PASSWORD)).flows
    assert read_login(settings.source.properties) == Credentials("PLAIN", "x", "of-nobody")
    resources.secret("kafka/pw", password="of-kafka")
    (settings,) = resources.load(access(PASSWORD)).flows
    assert read_login(settings.source.properties) == Credentials("PLAIN", "x", "of-kafka")


def test_a_resource_may_use_references_and_have_providers_of_its_own(resources: Resources) -> None:
    resources.secret("racks", here="eu-1\n")
    mirror = "sourceConnector: {config: {consumer.client.rack: '${secrets:kafka/racks:here}'}}"
    (settings,) = resources.load(old(mirror)).flows
    assert settings.clients.source_consumer["client.rack"] == "eu-1"
    own = "config.providers: mine, config.providers.mine.class: io.strimzi.kafka.KubernetesConfigMapConfigProvider"
    (settings,) = resources.load(old(mirror.replace("secrets", "mine"), target=own)).flows
    assert settings.clients.source_consumer["client.rack"] == "eu-1"
    assert resources.entries(old(mirror, target=own))["config.providers"] == "mine, secrets"
