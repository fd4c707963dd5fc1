"""The principal of a client, which refusals name and commands grant to."""

import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from lockstep_config.clients.oauth import TokenSettings
from lockstep_config.clients.principal import find_principal, subject_in_java
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.token_source import shared_token_source
from tests.support.certificates import Authority
from tests.support.token_server import TokenServer

MODULES = "org.apache.kafka.common.security"


def sasl(mechanism: str, module: str, options: str = "", **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{MODULES}.{module} required {options};",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@pytest.mark.parametrize(
    ("properties", "principal"),
    [
        (sasl("PLAIN", "plain.PlainLoginModule", 'username="mirror" password="x"'), "User:mirror"),
        (sasl("SCRAM-SHA-512", "scram.ScramLoginModule", 'username="a b" password="x"'), "User:a b"),
        (sasl("PLAIN", "plain.PlainLoginModule", 'password="x"'), None),
        (sasl("GSSAPI", "plain.PlainLoginModule"), None),
        ({}, None),
        ({"security.protocol": "SSL"}, None),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/nowhere.jks"}, None),
    ],
)
def test_principal_is_the_user_name_or_none(properties: dict[str, str], principal: str | None) -> None:
    assert find_principal(properties) == principal


def test_principal_of_a_certificate_is_its_current_subject(tmp_path: Path) -> None:
    authority, file = Authority(), tmp_path / "own.pem"
    properties = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    authority.certify("mirror").pem(file)
    assert find_principal(properties) == "User:CN=mirror"
    authority.certify("mirror-2").pem(file)
    os.utime(file, ns=(1, 1))  # whatever the file system's clock
    assert find_principal(properties) == "User:CN=mirror-2"
    with_login = properties | sasl("PLAIN", "plain.PlainLoginModule", 'username="u" password="x"')
    assert find_principal(with_login) == "User:u"
    file.write_text("half a")
    os.utime(file, ns=(2, 2))
    assert find_principal(properties) is None


def test_the_bearer_of_a_token_is_its_subject_once_there_is_one() -> None:
    with TokenServer({"mirror": "hush-hush"}) as server:
        properties = sasl(
            "OAUTHBEARER",
            "oauthbearer.OAuthBearerLoginModule",
            'clientId="mirror" clientSecret="hush-hush"',
            sasl_oauthbearer_token_endpoint_url=server.url,
        )
        login = read_login(properties).tokens
        assert isinstance(login, TokenSettings)
        assert find_principal(properties) is None
        assert server.asked == []
        shared_token_source(login).token()
        assert find_principal(properties) == "User:mirror"


def test_a_subject_is_written_as_java_writes_it() -> None:
    """Each line is what `X500Principal.getName()` of Java 17 gave for such a certificate."""

    def one(kind: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
        return x509.NameAttribute(kind, value)

    names = {
        'CN=\\#mirror,OU=\\ lead and trail\\ ,O=Ac\\, me \\+ co\\; \\<x\\> \\"q\\" \\\\b,L=L\\#o,ST=B\\=x,C=DE': [
            [one(NameOID.COUNTRY_NAME, "DE")],
            [one(NameOID.STATE_OR_PROVINCE_NAME, "B=x")],
            [one(NameOID.LOCALITY_NAME, "L#o")],
            [one(NameOID.ORGANIZATION_NAME, 'Ac, me + co; <x> "q" \\b')],
            [one(NameOID.ORGANIZATIONAL_UNIT_NAME, " lead and trail ")],
            [one(NameOID.COMMON_NAME, "#mirror")],
        ],
        "CN=mürr,2.5.4.5=#13023132,1.2.840.113549.1.9.1=#16056140622e63,STREET=s 1,UID=u1,DC=org": [
            [one(NameOID.DOMAIN_COMPONENT, "org")],
            [one(NameOID.USER_ID, "u1")],
            [one(NameOID.STREET_ADDRESS, "s 1")],
            [one(NameOID.EMAIL_ADDRESS, "a@b.c")],
            [one(NameOID.SERIAL_NUMBER, "12")],
            [one(NameOID.COMMON_NAME, "mürr")],
        ],
        "2.5.4.12=#0c0174,CN=a+OU=b": [
            [one(NameOID.COMMON_NAME, "a"), one(NameOID.ORGANIZATIONAL_UNIT_NAME, "b")],
            [one(NameOID.TITLE, "t")],
        ],
        "": [],
    }
    for written, rdns in names.items():
        assert subject_in_java(x509.Name([x509.RelativeDistinguishedName(rdn) for rdn in rdns])) == written
