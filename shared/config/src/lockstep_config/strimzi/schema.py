"""Every field of Strimzi's `KafkaMirrorMaker2` and `KafkaMirrorMaker`, in each API version, and what it becomes.

The fields are those of Strimzi's CRDs of 0.18 (v1alpha1, v1beta1), 0.45 and 0.49 (v1beta2) and 1.2 (v1). `strimzi.md`
has this table unchanged, and the messages about unknown fields come from it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lockstep_config.keys.lockstep_keys import STATE
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.strimzi.api_versions import (
    BEFORE_V1,
    BETA,
    BETA_ON,
    MIRROR_MAKER,
    MIRROR_MAKER_2,
    OLD,
)
from lockstep_config.strimzi.connection_fields import (
    CLUSTER,
    chart_field,
    list_field,
    object_field,
    text_field,
    unused_field,
)
from lockstep_config.strimzi.fields import Field, Fields, Form

_OFFSETS = "`lockstep offsets list`, `alter` and `reset` do this"
_CONNECTOR: Fields = MappingProxyType(
    {
        "tasksMax": Field(form=Form.NUMBER, minimum=1, becomes="`SOURCE->TARGET.tasks.max`"),
        "config": Field(form=Form.CONFIG, becomes="`SOURCE->TARGET.KEY`; [more](#connectors)"),
        "autoRestart": object_field(
            "`lockstep.auto.restart.enabled` and `lockstep.auto.restart.max` of the connector",
            {
                "enabled": Field(form=Form.FLAG, becomes="true where nothing is said"),
                "maxRestarts": Field(form=Form.NUMBER, minimum=0, becomes="0: not at all"),
            },
            versions=BETA_ON,
        ),
        "pause": Field(
            form=Form.FLAG, becomes="true: `state: paused`", versions=BEFORE_V1, reason="write state: paused"
        ),
        "state": text_field("`lockstep.state` of the connector", choices=KEYS[STATE].choices, versions=BETA_ON),
        "version": unused_field(Form.TEXT, reason="no plugin is loaded here", versions=BETA_ON),
        "listOffsets": unused_field(Form.MAP, reason=_OFFSETS, versions=BETA_ON),
        "alterOffsets": unused_field(Form.MAP, reason=_OFFSETS, versions=BETA_ON),
    }
)
_OF_BEFORE = "write spec.target and spec.mirrors[].source"
_MIRROR: Fields = MappingProxyType(
    {
        "sourceCluster": text_field(
            "the flow's source, an alias of spec.clusters", versions=BEFORE_V1, reason=_OF_BEFORE
        ),
        "targetCluster": text_field(
            "the flow's target, an alias of spec.clusters", versions=BEFORE_V1, reason=_OF_BEFORE
        ),
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
        "type": text_field("inline or external", required=True, choices=("inline", "external")),
        "loggers": Field(
            form=Form.CONFIG,
            becomes="levels of the root and of loggers that have a counterpart; others are named, without effect",
        ),
        "name": Field(
            form=Form.NAME,
            becomes="the ConfigMap; its key is log4j.properties",
            versions=OLD,
            reason="write valueFrom.configMapKeyRef",
        ),
        "valueFrom": object_field(
            "a ConfigMap with a log4j.properties or log4j2.properties",
            {"configMapKeyRef": Field(form=Form.MAP, becomes="its name and key")},
            versions=BETA_ON,
        ),
    }
)
_JVM: Fields = MappingProxyType(
    {
        "-Xmx": text_field("memory"),
        "-Xms": text_field("memory"),
        "-XX": Field(form=Form.CONFIG),
        "gcLoggingEnabled": Field(form=Form.FLAG),
        "javaSystemProperties": Field(form=Form.LIST),
    }
)
_POD: Fields = MappingProxyType(
    {
        "replicas": chart_field(Form.NUMBER, minimum=0, reason="lockstep run starts one of each service"),
        "image": chart_field(Form.NAME),
        "resources": chart_field(
            Form.MAP,
            fields={"limits": Field(form=Form.MAP), "requests": Field(form=Form.MAP), "claims": Field(form=Form.LIST)},
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
        "connectCluster": text_field("must be the mirrors' target", versions=BEFORE_V1, reason=_OF_BEFORE),
        "clusters": list_field(
            "`clusters`, and of each its connection", CLUSTER, versions=BEFORE_V1, reason=_OF_BEFORE
        ),
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
            Form.MAP, fields={"env": Field(form=Form.LIST), "volumes": Field(form=Form.LIST)}, versions=BEFORE_V1
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
                "numStreams": Field(form=Form.NUMBER, minimum=1, becomes="`tasks.max`"),
                "offsetCommitInterval": Field(
                    form=Form.NUMBER, minimum=1, becomes="`lockstep.legacy.offset.commit.interval.ms`"
                ),
                "config": Field(form=Form.CONFIG, becomes="`source.consumer.KEY`"),
            },
            required=True,
        ),
        "producer": object_field(
            "the cluster `target`: its connection is needed",
            {
                **_SIDE,
                "abortOnSendFailure": Field(form=Form.FLAG, becomes="`lockstep.legacy.abort.on.send.failure`"),
                "config": Field(form=Form.CONFIG, becomes="`target.producer.KEY`"),
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
            "metadata": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
            "spec": object_field("it says what is mirrored", spec, required=True),
            "status": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
            "settings": Field(form=Form.CONFIG, becomes="of a values file of the Helm chart: lines that count first"),
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
        "metadata": Field(form=Form.MAP, becomes="its name is the connector's"),
        "spec": object_field(
            "the connector",
            {
                **_CONNECTOR,
                "class": text_field("which of the three it is"),
                "pause": Field(form=Form.FLAG, becomes="true: `state: paused`"),
            },
            required=True,
        ),
        "status": Field(form=Form.MAP, becomes="accepted as a live resource has it"),
    }
)
"""The fields of a `KafkaConnector` with one of MM2's classes, in every API version."""
