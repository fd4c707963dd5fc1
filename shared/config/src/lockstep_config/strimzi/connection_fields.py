"""The fields by which a resource says how a cluster is reached: `tls`, `authentication` and what surrounds them."""

from __future__ import annotations

from types import MappingProxyType

from lockstep_config.strimzi.api_versions import BETA_ON
from lockstep_config.strimzi.fields import Field, Fields, Form, Use

__all__ = [
    "AUTHENTICATION",
    "CLUSTER",
    "NUMBER",
    "TLS",
    "chart_field",
    "list_field",
    "object_field",
    "text_field",
    "unused_field",
]


def text_field(becomes: str, **more: object) -> Field:
    return Field(form=Form.TEXT, becomes=becomes, **more)  # type: ignore[arg-type]  # keywords of Field


def object_field(becomes: str, fields: Fields, **more: object) -> Field:
    return Field(form=Form.MAP, becomes=becomes, fields=fields, **more)  # type: ignore[arg-type]  # as above


def list_field(becomes: str, fields: Fields, **more: object) -> Field:
    return Field(form=Form.LIST, becomes=becomes, fields=fields, **more)  # type: ignore[arg-type]  # as above


def chart_field(form: Form = Form.ANY, fields: Fields | None = None, **more: object) -> Field:
    return Field(form=form, use=Use.CHART, fields=fields or {}, **more)  # type: ignore[arg-type]  # as above


def unused_field(why: str, form: Form = Form.ANY, **more: object) -> Field:
    return Field(form=form, use=Use.WITHOUT_EFFECT, why=why, **more)  # type: ignore[arg-type]  # as above


NUMBER = Field(form=Form.NUMBER)
_SECRET_NAME = Field(form=Form.NAME, becomes="name the secret", required=True)
_SECRET_KEY = MappingProxyType(
    {"secretName": _SECRET_NAME, "key": text_field("name the key in the secret", required=True)}
)
_PASSWORD = MappingProxyType(
    {
        "secretName": _SECRET_NAME,
        "password": text_field("name the key in the secret that has the password", required=True),
    }
)
_CERTIFICATES: Fields = MappingProxyType(
    {
        "secretName": _SECRET_NAME,
        "certificate": text_field("the key in the secret with the PEM certificates"),
        "pattern": text_field("keys in the secret by a glob, as `*.crt`", versions=BETA_ON),
    }
)

AUTHENTICATION: Fields = MappingProxyType(
    {
        "type": text_field(
            "say which: tls, scram-sha-256, scram-sha-512, plain, oauth or custom",
            required=True,
            choices=("tls", "scram-sha-256", "scram-sha-512", "plain", "oauth", "custom"),
        ),
        "certificateAndKey": object_field(
            "`ALIAS.ssl.keystore.certificate.chain` and `ALIAS.ssl.keystore.key`",
            {
                "secretName": _SECRET_NAME,
                "certificate": text_field("name the key with the certificate", required=True),
                "key": text_field("name the key with the private key", required=True),
            },
        ),
        "username": text_field("the user of `ALIAS.sasl.jaas.config`"),
        "passwordSecret": object_field("the password of `ALIAS.sasl.jaas.config`", _PASSWORD),
        "clientId": text_field("`oauth.client.id` of `ALIAS.sasl.jaas.config`"),
        "clientSecret": object_field("`oauth.client.secret`", _SECRET_KEY),
        "accessToken": object_field("`oauth.access.token`", _SECRET_KEY),
        "accessTokenLocation": text_field("`oauth.access.token.location`"),
        "refreshToken": object_field("`oauth.refresh.token`", _SECRET_KEY),
        "tokenEndpointUri": text_field("`oauth.token.endpoint.uri`"),
        "scope": text_field("`oauth.scope`"),
        "audience": text_field("`oauth.audience`"),
        "grantType": text_field("`oauth.client.credentials.grant.type`"),
        "clientAssertion": object_field("`oauth.client.assertion`", _SECRET_KEY),
        "clientAssertionLocation": text_field("`oauth.client.assertion.location`"),
        "clientAssertionType": text_field("`oauth.client.assertion.type`"),
        "saslExtensions": Field(form=Form.CONFIG, becomes="`oauth.sasl.extension.NAME`"),
        "tlsTrustedCertificates": list_field("`oauth.ssl.truststore.certificates`", _CERTIFICATES),
        "disableTlsHostnameVerification": Field(
            form=Form.FLAG, becomes="true: an empty `oauth.ssl.endpoint.identification.algorithm`"
        ),
        "accessTokenIsJwt": Field(form=Form.FLAG, becomes="false: `oauth.access.token.is.jwt=false`"),
        "maxTokenExpirySeconds": Field(form=Form.NUMBER, becomes="`oauth.max.token.expiry.seconds`"),
        "connectTimeoutSeconds": Field(form=Form.NUMBER, minimum=1, becomes="`oauth.connect.timeout.seconds`"),
        "readTimeoutSeconds": Field(form=Form.NUMBER, minimum=1, becomes="`oauth.read.timeout.seconds`"),
        "httpRetries": Field(form=Form.NUMBER, minimum=0, becomes="`oauth.http.retries`"),
        "httpRetryPauseMs": Field(form=Form.NUMBER, minimum=0, becomes="`oauth.http.retry.pause.millis`"),
        "includeAcceptHeader": Field(form=Form.FLAG, becomes="false: `oauth.include.accept.header=false`"),
        "enableMetrics": unused_field("there are no OAuth metrics", Form.FLAG),
        "sasl": Field(form=Form.FLAG, becomes="with custom: whether SASL is spoken"),
        "config": Field(form=Form.CONFIG, becomes="with custom: `ALIAS.KEY`, of `ssl.keystore.` and `sasl.` only"),
    }
)

TLS = object_field(
    "`ALIAS.security.protocol=SSL` or `SASL_SSL`",
    {
        "trustedCertificates": list_field(
            "`ALIAS.ssl.truststore.certificates` with `ssl.truststore.type=PEM`; none: the system's are trusted",
            _CERTIFICATES,
        )
    },
)
CLUSTER: Fields = MappingProxyType(
    {
        "alias": text_field("name the cluster, as in `clusters`", required=True),
        "bootstrapServers": text_field("`ALIAS.bootstrap.servers`"),
        "tls": TLS,
        "authentication": object_field("`ALIAS.sasl.*` or `ALIAS.ssl.keystore.*`", AUTHENTICATION),
        "config": Field(
            form=Form.CONFIG,
            becomes="of the target: the Connect worker's, `TARGET.KEY`; of a source: its connection's, `SOURCE.KEY`",
        ),
    }
)
