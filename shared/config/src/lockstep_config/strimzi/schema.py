"""Every field of Strimzi's `KafkaMirrorMaker2` and `KafkaMirrorMaker`, in each API version, and what it becomes here.

After Strimzi's CRDs of 0.18 (v1alpha1, v1beta1), 0.45 and 0.49 (v1beta2) and 1.2 (v1). `docs/strimzi.md` has this table
as it stands here, and the messages about unknown fields come from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lockstep_config.keys.lockstep_keys import STATE
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.strimzi.fields import Field, Fields, Form, Use

__all__ = [
    "API_VERSIONS",
    "AUTHENTICATION",
    "CHART_VALUES",
    "IBMS",
    "KAFKA_CONNECTOR",
    "KINDS",
    "MIRROR_MAKER",
    "MIRROR_MAKER_2",
    "STRIMZI",
    "V1",
    "VERSIONS",
]

STRIMZI = "kafka.strimzi.io"
IBMS = ("eventstreams.ibm.com", "ibmevents.ibm.com")
"""The groups of IBM's two operators, which are Strimzi's under other names."""
MIRROR_MAKER_2 = "KafkaMirrorMaker2"
MIRROR_MAKER = "KafkaMirrorMaker"

ALPHA, BETA1, BETA, V1 = "v1alpha1", "v1beta1", "v1beta2", "v1"

VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {MIRROR_MAKER_2: (ALPHA, BETA, V1), MIRROR_MAKER: (ALPHA, BETA1, BETA)}
)
"""Strimzi's, the oldest first."""

API_VERSIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        kind: MappingProxyType(
            {f"{group}/{one}": one for group in (STRIMZI, *IBMS) for one in versions}
            | {f"{IBMS[0]}/{BETA1}": BETA1 if BETA1 in versions else ALPHA}
        )
        for kind, versions in VERSIONS.items()
    }
)
"""What may stand under `apiVersion`, and the version of Strimzi whose fields it has. IBM's own v1beta1 came before
v1beta2."""

OLD = frozenset({ALPHA, BETA1})
BEFORE_V1 = frozenset({ALPHA, BETA})
BETA_ON = frozenset({BETA, V1})


def _text(becomes: str, **more: object) -> Field:
    return Field(form=Form.TEXT, becomes=becomes, **more)  # type: ignore[arg-type]  # keywords of Field


def _object(becomes: str, fields: Fields, **more: object) -> Field:
    return Field(form=Form.MAP, becomes=becomes, fields=fields, **more)  # type: ignore[arg-type]  # as above


def _list(becomes: str, fields: Fields, **more: object) -> Field:
    return Field(form=Form.LIST, becomes=becomes, fields=fields, **more)  # type: ignore[arg-type]  # as above


def _chart(form: Form = Form.ANY, fields: Fields | None = None, **more: object) -> Field:
    return Field(form=form, use=Use.CHART, fields=fields or {}, **more)  # type: ignore[arg-type]  # as above


def _unused(why: str, form: Form = Form.ANY, **more: object) -> Field:
    return Field(form=form, use=Use.WITHOUT_EFFECT, why=why, **more)  # type: ignore[arg-type]  # as above


_NUMBER = Field(form=Form.NUMBER)
_SECRET_NAME = Field(form=Form.NAME, becomes="name the secret", required=True)
_SECRET_KEY = MappingProxyType({"secretName": _SECRET_NAME, "key": _text("name the key in the secret", required=True)})
_PASSWORD = MappingProxyType(
    {"secretName": _SECRET_NAME, "password": _text("name the key in the secret that has the password", required=True)}
)
_CERTIFICATES: Fields = MappingProxyType(
    {
        "secretName": _SECRET_NAME,
        "certificate": _text("the key in the secret with the PEM certificates"),
        "pattern": _text("keys in the secret by a glob, as `*.crt`", versions=BETA_ON),
    }
)

AUTHENTICATION: Fields = MappingProxyType(
    {
        "type": _text(
            "say which: tls, scram-sha-256, scram-sha-512, plain, oauth or custom",
            required=True,
            choices=("tls", "scram-sha-256", "scram-sha-512", "plain", "oauth", "custom"),
        ),
        "certificateAndKey": _object(
            "`ALIAS.ssl.keystore.certificate.chain` and `ALIAS.ssl.keystore.key`",
            {
                "secretName": _SECRET_NAME,
                "certificate": _text("name the key with the certificate", required=True),
                "key": _text("name the key with the private key", required=True),
            },
        ),
        "username": _text("the user of `ALIAS.sasl.jaas.config`"),
        "passwordSecret": _object("the password of `ALIAS.sasl.jaas.config`", _PASSWORD),
        "clientId": _text("`oauth.client.id` of `ALIAS.sasl.jaas.config`"),
        "clientSecret": _object("`oauth.client.secret`", _SECRET_KEY),
        "accessToken": _object("`oauth.access.token`", _SECRET_KEY),
        "accessTokenLocation": _text("`oauth.access.token.location`"),
        "refreshToken": _object("`oauth.refresh.token`", _SECRET_KEY),
        "tokenEndpointUri": _text("`oauth.token.endpoint.uri`"),
        "scope": _text("`oauth.scope`"),
        "audience": _text("`oauth.audience`"),
        "grantType": _text("`oauth.client.credentials.grant.type`"),
        "clientAssertion": _object("`oauth.client.assertion`", _SECRET_KEY),
        "clientAssertionLocation": _text("`oauth.client.assertion.location`"),
        "clientAssertionType": _text("`oauth.client.assertion.type`"),
        "saslExtensions": Field(form=Form.CONFIG, becomes="`oauth.sasl.extension.NAME`"),
        "tlsTrustedCertificates": _list("`oauth.ssl.truststore.certificates`", _CERTIFICATES),
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
        "enableMetrics": _unused("there are no OAuth metrics", Form.FLAG),
        "sasl": Field(form=Form.FLAG, becomes="with custom: whether SASL is spoken"),
        "config": Field(form=Form.CONFIG, becomes="with custom: `ALIAS.KEY`, of `ssl.keystore.` and `sasl.` only"),
    }
)

_TLS = _object(
    "`ALIAS.security.protocol=SSL` or `SASL_SSL`",
    {
        "trustedCertificates": _list(
            "`ALIAS.ssl.truststore.certificates` with `ssl.truststore.type=PEM`; none: the system's are trusted",
            _CERTIFICATES,
        )
    },
)
_CLUSTER: Fields = MappingProxyType(
    {
        "alias": _text("name the cluster, as in `clusters`", required=True),
        "bootstrapServers": _text("`ALIAS.bootstrap.servers`"),
        "tls": _TLS,
        "authentication": _object("`ALIAS.sasl.*` or `ALIAS.ssl.keystore.*`", AUTHENTICATION),
        "config": Field(
            form=Form.CONFIG,
            becomes="of the target: the Connect worker's, `TARGET.KEY`; of a source: its connection's, `SOURCE.KEY`",
        ),
    }
)
_OFFSETS = "`lockstep offsets list`, `alter` and `reset` do this"
_CONNECTOR: Fields = MappingProxyType(
    {
        "tasksMax": Field(form=Form.NUMBER, minimum=1, becomes="`SOURCE->TARGET.tasks.max`"),
        "config": Field(form=Form.CONFIG, becomes="`SOURCE->TARGET.KEY`; [more](#connectors)"),
        "autoRestart": _object(
            "`lockstep.auto.restart.enabled` and `lockstep.auto.restart.max` of the connector",
            {
                "enabled": Field(form=Form.FLAG, becomes="true where nothing is said"),
                "maxRestarts": Field(form=Form.NUMBER, minimum=0, becomes="0: not at all"),
            },
            versions=BETA_ON,
        ),
        "pause": Field(form=Form.FLAG, becomes="true: `state: paused`", versions=BEFORE_V1, why="write state: paused"),
        "state": _text("`lockstep.state` of the connector", choices=KEYS[STATE].choices, versions=BETA_ON),
        "version": _unused("no plugin is loaded here", Form.TEXT, versions=BETA_ON),
        "listOffsets": _unused(_OFFSETS, Form.MAP, versions=BETA_ON),
        "alterOffsets": _unused(_OFFSETS, Form.MAP, versions=BETA_ON),
    }
)
_OF_BEFORE = "write spec.target and spec.mirrors[].source"
_MIRROR: Fields = MappingProxyType(
    {
        "sourceCluster": _text("the flow's source, an alias of spec.clusters", versions=BEFORE_V1, why=_OF_BEFORE),
        "targetCluster": _text("the flow's target, an alias of spec.clusters", versions=BEFORE_V1, why=_OF_BEFORE),
        "source": _object("the flow's source", _CLUSTER, versions=BETA_ON),
        "sourceConnector": _object("`SOURCE->TARGET.enabled=true`; absent: no topic is mirrored", _CONNECTOR),
        "checkpointConnector": _object("checkpoints; absent: there are none", _CONNECTOR),
        "heartbeatConnector": _object("heartbeats, in v1 too; absent: there are none", _CONNECTOR),
        "topicsPattern": _text("`SOURCE->TARGET.topics`"),
        "topicsExcludePattern": _text(
            "`SOURCE->TARGET.topics.exclude`", versions=BETA_ON, why="write topicsBlacklistPattern"
        ),
        "topicsBlacklistPattern": _text(
            "`SOURCE->TARGET.topics.exclude`", versions=BEFORE_V1, why="write topicsExcludePattern"
        ),
        "groupsPattern": _text("`SOURCE->TARGET.groups`"),
        "groupsExcludePattern": _text(
            "`SOURCE->TARGET.groups.exclude`", versions=BETA_ON, why="write groupsBlacklistPattern"
        ),
        "groupsBlacklistPattern": _text(
            "`SOURCE->TARGET.groups.exclude`", versions=BEFORE_V1, why="write groupsExcludePattern"
        ),
    }
)
_PROBE: Fields = MappingProxyType(
    {
        "initialDelaySeconds": Field(form=Form.NUMBER, minimum=0),
        "timeoutSeconds": Field(form=Form.NUMBER, minimum=1),
        "periodSeconds": Field(form=Form.NUMBER, minimum=1),
        "successThreshold": Field(form=Form.NUMBER, minimum=1),
        "failureThreshold": Field(form=Form.NUMBER, minimum=1),
    }
)
_NO_JMX = "there is no JMX here"
_LOGGING: Fields = MappingProxyType(
    {
        "type": _text("inline or external", required=True, choices=("inline", "external")),
        "loggers": Field(
            form=Form.CONFIG,
            becomes="levels of the root and of loggers that have a counterpart; others are named, without effect",
        ),
        "name": Field(
            form=Form.NAME,
            becomes="the ConfigMap; its key is log4j.properties",
            versions=OLD,
            why="write valueFrom.configMapKeyRef",
        ),
        "valueFrom": _object(
            "a ConfigMap with a log4j.properties or log4j2.properties",
            {"configMapKeyRef": Field(form=Form.MAP, becomes="its name and key")},
            versions=BETA_ON,
        ),
    }
)
_JVM: Fields = MappingProxyType(
    {
        "-Xmx": _text("memory"),
        "-Xms": _text("memory"),
        "-XX": Field(form=Form.CONFIG),
        "gcLoggingEnabled": Field(form=Form.FLAG),
        "javaSystemProperties": Field(form=Form.LIST),
    }
)
_POD: Fields = MappingProxyType(
    {
        "replicas": _chart(Form.NUMBER, minimum=0, why="lockstep run starts one of each service"),
        "image": _chart(Form.NAME),
        "resources": _chart(
            Form.MAP,
            {"limits": Field(form=Form.MAP), "requests": Field(form=Form.MAP), "claims": Field(form=Form.LIST)},
        ),
        "livenessProbe": _chart(Form.MAP, _PROBE),
        "readinessProbe": _chart(Form.MAP, _PROBE),
        "jvmOptions": _chart(Form.MAP, _JVM),
        "logging": _object("`lockstep.log.level` and `lockstep.log.level.SERVICE`, or `lockstep.log.file`", _LOGGING),
        "metrics": _unused("each service has its metrics page always", Form.MAP, versions=OLD),
        "metricsConfig": _unused("each service has its metrics page always", Form.MAP),
        "template": _chart(Form.MAP),
        "tracing": _object(
            "spans; [more](tracing.md)",
            {
                "type": _text(
                    "opentelemetry: `lockstep.tracing=opentelemetry`; jaeger, which Strimzi has dropped, has no effect",
                    required=True,
                    choices=("opentelemetry", "jaeger"),
                )
            },
        ),
        "affinity": _chart(Form.MAP, versions=OLD),
        "tolerations": _chart(Form.LIST, versions=OLD),
    }
)
_VERSION = _text("`lockstep.mm2.version`: the rules of that version; older ones than 3.0 count as 3.0")

_MM2_SPEC: Fields = MappingProxyType(
    {
        "version": _VERSION,
        "connectCluster": _text("must be the mirrors' target", versions=BEFORE_V1, why=_OF_BEFORE),
        "clusters": _list("`clusters`, and of each its connection", _CLUSTER, versions=BEFORE_V1, why=_OF_BEFORE),
        "target": _object(
            "the target of all mirrors",
            {
                **_CLUSTER,
                "groupId": _text("name the group: `TARGET.group.id`", required=True),
                "offsetStorageTopic": _text("name the topic: `TARGET.offset.storage.topic`", required=True),
                "configStorageTopic": _text("`TARGET.config.storage.topic`, without effect"),
                "statusStorageTopic": _text("`TARGET.status.storage.topic`, without effect"),
            },
            versions=BETA_ON,
        ),
        "mirrors": _list("the flows: write at least one", _MIRROR, required=True),
        "rack": _chart(
            Form.MAP,
            {
                "topologyKey": _text("a label of nodes"),
                "type": _text("where the rack stands", choices=("topology-label", "environment-variable")),
                "envVarName": _text("an environment variable"),
            },
            why="it reads a node's label; without Kubernetes write consumer.client.rack into sourceConnector.config",
        ),
        "clientRackInitImage": _chart(Form.NAME),
        "jmxOptions": _unused(_NO_JMX, Form.MAP),
        "externalConfiguration": _chart(
            Form.MAP, {"env": Field(form=Form.LIST), "volumes": Field(form=Form.LIST)}, versions=BEFORE_V1
        ),
        **_POD,
    }
)

_SIDE: Fields = MappingProxyType(
    {name: known for name, known in _CLUSTER.items() if name in ("bootstrapServers", "tls", "authentication")}
)
_MM1_SPEC: Fields = MappingProxyType(
    {
        "version": _unused("MirrorMaker 1 is the same in every version", Form.TEXT),
        "consumer": _object(
            "the cluster `source`: its connection is needed",
            {
                **_SIDE,
                "groupId": _text("`lockstep.legacy.group`: the group whose positions count", required=True),
                "numStreams": Field(form=Form.NUMBER, minimum=1, becomes="`tasks.max`"),
                "offsetCommitInterval": Field(
                    form=Form.NUMBER, minimum=1, becomes="`lockstep.legacy.offset.commit.interval.ms`"
                ),
                "config": Field(form=Form.CONFIG, becomes="`source.consumer.KEY`"),
            },
            required=True,
        ),
        "producer": _object(
            "the cluster `target`: its connection is needed",
            {
                **_SIDE,
                "abortOnSendFailure": Field(form=Form.FLAG, becomes="`lockstep.legacy.abort.on.send.failure`"),
                "config": Field(form=Form.CONFIG, becomes="`target.producer.KEY`"),
            },
            required=True,
        ),
        "whitelist": _text("`topics`: `*` alone is every topic, commas separate expressions"),
        "include": _text("`topics`, as `whitelist`", versions=frozenset({BETA})),
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
"""What a values file of the Helm chart may have beside its resource, and `settings`, which the services read too."""


def _resource(spec: Fields, becomes: str) -> Fields:
    return MappingProxyType(
        {
            "apiVersion": _text("the API version"),
            "kind": _text("the kind"),
            "metadata": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
            "spec": _object(becomes, spec, required=True),
            "status": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
            "settings": Field(form=Form.CONFIG, becomes="of a values file of the Helm chart: lines that count first"),
        }
    )


KINDS: Mapping[str, Fields] = MappingProxyType(
    {
        MIRROR_MAKER_2: _resource(_MM2_SPEC, "it says what is mirrored"),
        MIRROR_MAKER: _resource(_MM1_SPEC, "it says what is mirrored"),
    }
)
"""The fields of each kind, from the top."""

KAFKA_CONNECTOR: Fields = MappingProxyType(
    {
        "apiVersion": _text("the API version"),
        "kind": _text("the kind"),
        "metadata": Field(form=Form.MAP, becomes="its name is the connector's"),
        "spec": _object(
            "the connector",
            {
                **_CONNECTOR,
                "class": _text("which of the three it is"),
                "pause": Field(form=Form.FLAG, becomes="true: `state: paused`"),
            },
            required=True,
        ),
        "status": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
    }
)
"""The fields of a `KafkaConnector` with one of MM2's classes, in every API version."""
