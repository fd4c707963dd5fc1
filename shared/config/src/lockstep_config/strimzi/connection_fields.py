"""The fields of a resource about a cluster's connection: `tls`, `authentication` and what surrounds them."""

from functools import partial
from types import MappingProxyType

from lockstep_config.clients.sasl import MECHANISMS
from lockstep_config.strimzi.api_versions import BETA_ON
from lockstep_config.strimzi.fields import Field, Fields, Form, Use

text_field = partial(Field, Form.TEXT)
object_field = partial(Field, Form.MAP)
list_field = partial(Field, Form.LIST)
chart_field = partial(Field, use=Use.CHART)
unused_field = partial(Field, use=Use.WITHOUT_EFFECT)


def _option(name: str, form: Form = Form.TEXT, *, secret: bool = False, minimum: int | None = None) -> Field:
    fields = _SECRET_KEY if secret else {}
    return Field(Form.MAP if secret else form, f"`{name}`", fields, minimum=minimum, option=name)


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

_TYPES = ("tls", *(mechanism.strimzi_type for mechanism in MECHANISMS.values() if mechanism.strimzi_type), "custom")
AUTHENTICATION: Fields = MappingProxyType(
    {
        "type": text_field(
            f"say which: {', '.join(_TYPES[:-1])} or {_TYPES[-1]}",
            required=True,
            choices=_TYPES,
        ),
        "certificateAndKey": object_field(
            "`ALIAS.ssl.keystore.certificate.chain` and `ALIAS.ssl.keystore.key`",
            {
                "secretName": _SECRET_NAME,
                "certificate": text_field("name the key with the certificate", required=True),
                "key": text_field("name the key with the private key", required=True),
            },
        ),
        "username": text_field("the user of `ALIAS.sasl.jaas.config`", option="oauth.password.grant.username"),
        "passwordSecret": object_field("the password of `ALIAS.sasl.jaas.config`", _PASSWORD),
        "clientId": text_field("`oauth.client.id` of `ALIAS.sasl.jaas.config`", option="oauth.client.id"),
        "clientSecret": _option("oauth.client.secret", secret=True),
        "accessToken": _option("oauth.access.token", secret=True),
        "accessTokenLocation": _option("oauth.access.token.location"),
        "refreshToken": _option("oauth.refresh.token", secret=True),
        "tokenEndpointUri": _option("oauth.token.endpoint.uri"),
        "scope": _option("oauth.scope"),
        "audience": _option("oauth.audience"),
        "grantType": _option("oauth.client.credentials.grant.type"),
        "clientAssertion": _option("oauth.client.assertion", secret=True),
        "clientAssertionLocation": _option("oauth.client.assertion.location"),
        "clientAssertionType": _option("oauth.client.assertion.type"),
        "saslExtensions": Field(form=Form.CONFIG, becomes="`oauth.sasl.extension.NAME`"),
        "tlsTrustedCertificates": list_field("`oauth.ssl.truststore.certificates`", _CERTIFICATES),
        "disableTlsHostnameVerification": Field(
            form=Form.FLAG, becomes="true: an empty `oauth.ssl.endpoint.identification.algorithm`"
        ),
        "accessTokenIsJwt": Field(form=Form.FLAG, becomes="false: `oauth.access.token.is.jwt=false`"),
        "maxTokenExpirySeconds": _option("oauth.max.token.expiry.seconds", Form.NUMBER),
        "connectTimeoutSeconds": _option("oauth.connect.timeout.seconds", Form.NUMBER, minimum=1),
        "readTimeoutSeconds": _option("oauth.read.timeout.seconds", Form.NUMBER, minimum=1),
        "httpRetries": _option("oauth.http.retries", Form.NUMBER, minimum=0),
        "httpRetryPauseMs": _option("oauth.http.retry.pause.millis", Form.NUMBER, minimum=0),
        "includeAcceptHeader": Field(form=Form.FLAG, becomes="false: `oauth.include.accept.header=false`"),
        "enableMetrics": unused_field(Form.FLAG, reason="there are no OAuth metrics"),
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
