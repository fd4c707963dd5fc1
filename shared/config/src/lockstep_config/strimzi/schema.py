"""Every field of Strimzi's `KafkaMirrorMaker2` and `KafkaMirrorMaker`, in each API version, and what it becomes.

The fields are those of Strimzi's CRDs of 0.18 (v1alpha1, v1beta1), 0.45 and 0.49 (v1beta2) and 1.2 (v1). `strimzi.md`
has this table unchanged, and the messages about unknown fields come from it.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from lockstep_config.clients.sasl import MECHANISMS
from lockstep_config.keys.lockstep_keys import STATE
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.strimzi.api_versions import BEFORE_V1, BETA, BETA_ON, MIRROR_MAKER, MIRROR_MAKER_2, OLD
from lockstep_config.strimzi.fields import Field, Fields, Form, Use

text_field = partial(Field, Form.TEXT)
object_field = partial(Field, Form.MAP)
list_field = partial(Field, Form.LIST)
name_field = partial(Field, Form.NAME)
number_field = partial(Field, Form.NUMBER)
flag_field = partial(Field, Form.FLAG)
config_field = partial(Field, Form.CONFIG)
chart_field = partial(Field, use=Use.CHART)
unused_field = partial(Field, use=Use.WITHOUT_EFFECT)


def _option(name: str, form: Form = Form.TEXT, *, secret: bool = False, minimum: int | None = None) -> Field:
    fields = _SECRET_KEY if secret else {}
    return Field(Form.MAP if secret else form, f"`{name}`", fields, minimum=minimum, option=name)


_SECRET_NAME = name_field("name the secret", required=True)
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
        "type": text_field(f"say which: {', '.join(_TYPES[:-1])} or {_TYPES[-1]}", required=True, choices=_TYPES),
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
        "saslExtensions": config_field("`oauth.sasl.extension.NAME`"),
        "tlsTrustedCertificates": list_field("`oauth.ssl.truststore.certificates`", _CERTIFICATES),
        "disableTlsHostnameVerification": flag_field("true: an empty `oauth.ssl.endpoint.identification.algorithm`"),
        "accessTokenIsJwt": flag_field("false: `oauth.access.token.is.jwt=false`"),
        "maxTokenExpirySeconds": _option("oauth.max.token.expiry.seconds", Form.NUMBER),
        "connectTimeoutSeconds": _option("oauth.connect.timeout.seconds", Form.NUMBER, minimum=1),
        "readTimeoutSeconds": _option("oauth.read.timeout.seconds", Form.NUMBER, minimum=1),
        "httpRetries": _option("oauth.http.retries", Form.NUMBER, minimum=0),
        "httpRetryPauseMs": _option("oauth.http.retry.pause.millis", Form.NUMBER, minimum=0),
        "includeAcceptHeader": flag_field("false: `oauth.include.accept.header=false`"),
        "enableMetrics": unused_field(Form.FLAG, reason="there are no OAuth metrics"),
        "sasl": flag_field("with custom: whether SASL is spoken"),
        "config": config_field("with custom: `ALIAS.KEY`, of `ssl.keystore.` and `sasl.` only"),
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
        "config": config_field(
            "of the target: the Connect worker's, `TARGET.KEY`; of a source: its connection's, `SOURCE.KEY`"
        ),
    }
)

_OFFSETS = "`lockstep offsets list`, `alter` and `reset` do this"
_CONNECTOR: Fields = MappingProxyType(
    {
        "tasksMax": number_field(minimum=1, becomes="`SOURCE->TARGET.tasks.max`"),
        "config": config_field("`SOURCE->TARGET.KEY`; [more](#connectors)"),
        "autoRestart": object_field(
            "`lockstep.auto.restart.enabled` and `lockstep.auto.restart.max` of the connector",
            {
                "enabled": flag_field("true where nothing is said"),
                "maxRestarts": number_field(minimum=0, becomes="0: not at all"),
            },
            versions=BETA_ON,
        ),
        "pause": flag_field("true: `state: paused`", versions=BEFORE_V1, reason="write state: paused"),
        "state": text_field("`lockstep.state` of the connector", choices=KEYS[STATE].choices, versions=BETA_ON),
        "version": unused_field(Form.TEXT, reason="no plugin is loaded here", versions=BETA_ON),
        "listOffsets": unused_field(Form.MAP, reason=_OFFSETS, versions=BETA_ON),
        "alterOffsets": unused_field(Form.MAP, reason=_OFFSETS, versions=BETA_ON),
    }
)
_IN_V1 = "write spec.target and spec.mirrors[].source"
_MIRROR: Fields = MappingProxyType(
    {
        "sourceCluster": text_field("the flow's source, an alias of spec.clusters", versions=BEFORE_V1, reason=_IN_V1),
        "targetCluster": text_field("the flow's target, an alias of spec.clusters", versions=BEFORE_V1, reason=_IN_V1),
        "source": object_field("the flow's source", CLUSTER, versions=BETA_ON),
        "sourceConnector": object_field("`SOURCE->TARGET.enabled=true`; absent: no topic is mirrored", _CONNECTOR),
        "checkpointConnector": object_field("checkpoints; absent: there are none", _CONNECTOR),
        "heartbeatConnector": object_field("heartbeats, in v1 too; absent: there are none", _CONNECTOR),
        "topicsPattern": text_field("`SOURCE->TARGET.topics`"),
        "topicsExcludePattern": text_field(
            "`SOURCE->TARGET.topics.exclude`", versions=BETA_ON, reason="write topicsBlacklistPattern"
        ),
        "topicsBlacklistPattern": text_field(
            "`SOURCE->TARGET.topics.exclude`", versions=BEFORE_V1, reason="write topicsExcludePattern"
        ),
        "groupsPattern": text_field("`SOURCE->TARGET.groups`"),
        "groupsExcludePattern": text_field(
            "`SOURCE->TARGET.groups.exclude`", versions=BETA_ON, reason="write groupsBlacklistPattern"
        ),
        "groupsBlacklistPattern": text_field(
            "`SOURCE->TARGET.groups.exclude`", versions=BEFORE_V1, reason="write groupsExcludePattern"
        ),
    }
)
_PROBE: Fields = MappingProxyType(
    {
        "initialDelaySeconds": number_field(minimum=0),
        "timeoutSeconds": number_field(minimum=1),
        "periodSeconds": number_field(minimum=1),
        "successThreshold": number_field(minimum=1),
        "failureThreshold": number_field(minimum=1),
    }
)
_NO_JMX = "there is no JMX here"
_LOGGING: Fields = MappingProxyType(
    {
        "type": text_field("inline or external", required=True, choices=("inline", "external")),
        "loggers": config_field(
            "levels of the root and of loggers that have a counterpart; others are named, without effect"
        ),
        "name": name_field(
            "the ConfigMap; its key is log4j.properties", versions=OLD, reason="write valueFrom.configMapKeyRef"
        ),
        "valueFrom": object_field(
            "a ConfigMap with a log4j.properties or log4j2.properties",
            {"configMapKeyRef": object_field("its name and key")},
            versions=BETA_ON,
        ),
    }
)
_JVM: Fields = MappingProxyType(
    {
        "-Xmx": text_field("memory"),
        "-Xms": text_field("memory"),
        "-XX": config_field(),
        "gcLoggingEnabled": flag_field(),
        "javaSystemProperties": list_field(),
    }
)
_POD: Fields = MappingProxyType(
    {
        "replicas": chart_field(Form.NUMBER, minimum=0, reason="lockstep run starts one of each service"),
        "image": chart_field(Form.NAME),
        "resources": chart_field(
            Form.MAP, fields={"limits": object_field(), "requests": object_field(), "claims": list_field()}
        ),
        "livenessProbe": chart_field(Form.MAP, fields=_PROBE),
        "readinessProbe": chart_field(Form.MAP, fields=_PROBE),
        "jvmOptions": chart_field(Form.MAP, fields=_JVM),
        "logging": object_field(
            "`lockstep.log.level` and `lockstep.log.level.SERVICE`, or `lockstep.log.file`", _LOGGING
        ),
        "metrics": unused_field(Form.MAP, reason="each service has its metrics page always", versions=OLD),
        "metricsConfig": unused_field(Form.MAP, reason="each service has its metrics page always"),
        "template": chart_field(Form.MAP),
        "tracing": object_field(
            "spans; [more](tracing.md)",
            {
                "type": text_field(
                    "opentelemetry: `lockstep.tracing=opentelemetry`; jaeger, which Strimzi has dropped, has no effect",
                    required=True,
                    choices=("opentelemetry", "jaeger"),
                )
            },
        ),
        "affinity": chart_field(Form.MAP, versions=OLD),
        "tolerations": chart_field(Form.LIST, versions=OLD),
    }
)
_VERSION = text_field("`lockstep.mm2.version`: the rules of that version; older ones than 3.0 count as 3.0")

_MM2_SPEC: Fields = MappingProxyType(
    {
        "version": _VERSION,
        "connectCluster": text_field("must be the mirrors' target", versions=BEFORE_V1, reason=_IN_V1),
        "clusters": list_field("`clusters`, and of each its connection", CLUSTER, versions=BEFORE_V1, reason=_IN_V1),
        "target": object_field(
            "the target of all mirrors",
            {
                **CLUSTER,
                "groupId": text_field("name the group: `TARGET.group.id`", required=True),
                "offsetStorageTopic": text_field("name the topic: `TARGET.offset.storage.topic`", required=True),
                "configStorageTopic": text_field("`TARGET.config.storage.topic`, without effect"),
                "statusStorageTopic": text_field("`TARGET.status.storage.topic`, without effect"),
            },
            versions=BETA_ON,
        ),
        "mirrors": list_field("the flows: write at least one", _MIRROR, required=True),
        "rack": chart_field(
            Form.MAP,
            fields={
                "topologyKey": text_field("a label of nodes"),
                "type": text_field("where the rack is named", choices=("topology-label", "environment-variable")),
                "envVarName": text_field("an environment variable"),
            },
            reason="it reads a node's label; without Kubernetes write consumer.client.rack into sourceConnector.config",
        ),
        "clientRackInitImage": chart_field(Form.NAME),
        "jmxOptions": unused_field(Form.MAP, reason=_NO_JMX),
        "externalConfiguration": chart_field(
            Form.MAP, fields={"env": list_field(), "volumes": list_field()}, versions=BEFORE_V1
        ),
        **_POD,
    }
)

_SIDE: Fields = MappingProxyType({name: CLUSTER[name] for name in ("bootstrapServers", "tls", "authentication")})
_MM1_SPEC: Fields = MappingProxyType(
    {
        "version": unused_field(Form.TEXT, reason="MirrorMaker 1 is the same in every version"),
        "consumer": object_field(
            "the cluster `source`: its connection is needed",
            {
                **_SIDE,
                "groupId": text_field("`lockstep.legacy.group`: the group whose positions count", required=True),
                "numStreams": number_field(minimum=1, becomes="`tasks.max`"),
                "offsetCommitInterval": number_field(minimum=1, becomes="`lockstep.legacy.offset.commit.interval.ms`"),
                "config": config_field("`source.consumer.KEY`"),
            },
            required=True,
        ),
        "producer": object_field(
            "the cluster `target`: its connection is needed",
            {
                **_SIDE,
                "abortOnSendFailure": flag_field("`lockstep.legacy.abort.on.send.failure`"),
                "config": config_field("`target.producer.KEY`"),
            },
            required=True,
        ),
        "whitelist": text_field("`topics`: `*` alone is every topic, commas separate expressions"),
        "include": text_field("`topics`, as `whitelist`", versions=frozenset({BETA})),
        **_POD,
    }
)


CHART_VALUES = (
    "fullnameOverride",
    "commonLabels",
    "commonAnnotations",
    "global",
    "images",
    "imagePullSecrets",
    "extraSecrets",
    "extraConfigMaps",
    "logFormat",
    "defaultResources",
    "common",
    "services",
    "flows",
    "dataPlane",
    "console",
    "serviceAccount",
    "rbac",
    "networkPolicy",
    "metrics",
    "alerts",
    "dashboards",
    "check",
    "helmTest",
    "revisionHistoryLimit",
    "extraManifests",
)
"""Values that a values file of the Helm chart may have beside its resource.

It may have `settings` too, which the services also read.
"""


def _resource(spec: Fields) -> Fields:
    return MappingProxyType(
        {
            "apiVersion": text_field("the API version"),
            "kind": text_field("the kind"),
            "metadata": object_field("accepted as a live resource has it"),
            "spec": object_field("it says what is mirrored", spec, required=True),
            "status": object_field("accepted as a live resource has it"),
            "settings": config_field("of a values file of the Helm chart: lines that count first"),
        }
    )


KINDS: Mapping[str, Fields] = MappingProxyType(
    {MIRROR_MAKER_2: _resource(_MM2_SPEC), MIRROR_MAKER: _resource(_MM1_SPEC)}
)
"""The fields of each kind, from the top."""

KAFKA_CONNECTOR: Fields = MappingProxyType(
    {
        "apiVersion": text_field("the API version"),
        "kind": text_field("the kind"),
        "metadata": object_field("its name is the connector's"),
        "spec": object_field(
            "the connector",
            {
                **_CONNECTOR,
                "class": text_field("which of the three it is"),
                "pause": flag_field("true: `state: paused`"),
            },
            required=True,
        ),
        "status": object_field("accepted as a live resource has it"),
    }
)
"""The fields of a `KafkaConnector` with one of MM2's classes, in every API version."""
