"""`helm install` refuses what cannot work, with a sentence."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.chart.helm import NEEDS_PINNED_HELM, SEEDS, refused, rendered
from tests.chart.test_workloads import EVERYTHING, resource, v1

pytestmark = NEEDS_PINNED_HELM

FLOW = {"from": "A", "to": "B", **EVERYTHING}
GOOD = resource(FLOW)
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="changeit";'
LEGACY = next(seed for seed in SEEDS if seed.stem == "strimzi-0.18-mirror-maker")


def spec(**changed: Any) -> dict[str, Any]:
    return {**GOOD, "spec": {**GOOD["spec"], **changed}}


def mirror(**changed: Any) -> dict[str, Any]:
    return spec(mirrors=[{**GOOD["spec"]["mirrors"][0], **changed}])


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "nothing to mirror: give a KafkaMirrorMaker2 or KafkaMirrorMaker resource"),
    "another kind": ({**GOOD, "kind": "Kafka"}, 'kind is "Kafka": it takes KafkaMirrorMaker2 or KafkaMirrorMaker'),
    "another API": ({**GOOD, "apiVersion": "apps/v1"}, 'apiVersion is "apps/v1"'),
    "no clusters": (spec(clusters=[]), "spec.clusters is missing or empty"),
    "no mirrors": (spec(mirrors=[]), "spec.mirrors is missing or empty"),
    "an unknown source": (
        mirror(sourceCluster="C"),
        'spec.mirrors[0].sourceCluster is "C", which is not in spec.clusters (A, B)',
    ),
    "an unknown target": (mirror(targetCluster="C"), 'spec.mirrors[0].targetCluster is "C", which is not in'),
    "no source": (mirror(sourceCluster=""), "spec.mirrors[0].sourceCluster is missing"),
    "no source in v1": (
        {**v1(), "spec": {**v1()["spec"], "mirrors": [{"sourceConnector": {}}]}},
        "spec.mirrors[0].source.alias is missing",
    ),
    "to itself": (mirror(targetCluster="A"), "spec.mirrors[0] leads from A to itself"),
    "two flows with one name": (
        resource(FLOW, FLOW),
        "spec.mirrors[1] mirrors A->B again, after spec.mirrors[0]: keep one",
    ),
    "no replicas": (spec(replicas=0), "spec.replicas is 0, so nothing would run: set it to 1 or more"),
    "fewer than none": (spec(replicas=-1), "spec.replicas is -1, so nothing would run"),
    "no replicas of a service": (
        {**GOOD, "services": {"checkpoint": {"replicas": 0}}},
        "replicas of checkpoint for A->B is 0: the least is 1; to run none of it, set services.checkpoint.enabled",
    ),
    "no replicas in a flow": (
        {**GOOD, "flows": {"A->B": {"dataPlane": {"replicas": 0}}}},
        "replicas of dataPlane for A->B is 0",
    ),
    "a flow that is none": (
        {**GOOD, "flows": {"B->A": {"checkpoint": {"replicas": 2}}}},
        'flows has "B->A", which is no flow of the resource (A->B)',
    ),
    "a secret of another namespace": (
        mirror(sourceConnector={"config": {"consumer.ssl.key.password": "${secrets:elsewhere/my-secret:password}"}}),
        'refers to the secret "my-secret" of the namespace "elsewhere", but the release is in "kafka"',
    ),
    "a config map of another namespace": (
        {**GOOD, "settings": {"topics": "${configmaps:elsewhere/topics:all}"}},
        'refers to the config map "topics" of the namespace "elsewhere"',
    ),
    "a password in clear text": (
        mirror(sourceConnector={"config": {"consumer.ssl.key.password": "changeit"}}),
        'spec.mirrors[0].sourceConnector.config has the secret of "consumer.ssl.key.password" in clear text',
    ),
    "a login with a password in clear text": (
        spec(
            clusters=[
                {**GOOD["spec"]["clusters"][0], "config": {"sasl.jaas.config": LOGIN}},
                *GOOD["spec"]["clusters"][1:],
            ]
        ),
        'spec.clusters[0].config has the secret of "sasl.jaas.config" in clear text',
    ),
    "a secret of Spark's in clear text": (
        {**GOOD, "settings": {"lockstep.spark.conf.spark.authenticate.secret": "changeit"}},
        'settings has the secret of "lockstep.spark.conf.spark.authenticate.secret" in clear text',
    ),
    "a variable in clear text": (
        {**GOOD, "common": {"extraEnv": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "changeit"}]}},
        'common.extraEnv[0] has the secret of "AWS_SECRET_ACCESS_KEY" in clear text',
    ),
    "a secret behind a provider of one's own": (
        spec(
            clusters=[
                GOOD["spec"]["clusters"][0],
                {
                    **GOOD["spec"]["clusters"][1],
                    "config": {
                        "config.providers": "mine",
                        "config.providers.mine.class": "io.strimzi.kafka.KubernetesSecretConfigProvider",
                        "sasl.jaas.config": "${mine:elsewhere/my-secret:password}",
                    },
                },
            ]
        ),
        'of the namespace "elsewhere"',
    ),
    "a secret and a config map of one name": (
        {**GOOD, "extraSecrets": ["both"], "extraConfigMaps": ["both"]},
        '"both" is the name of a secret and of a config map',
    ),
    "a probe that Kubernetes refuses": (
        spec(livenessProbe={"successThreshold": 2}),
        "spec.livenessProbe.successThreshold is 2: Kubernetes allows 1 only",
    ),
    "two monitors": (
        {**GOOD, "metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}},
        "both enabled: every sample would count twice",
    ),
    "executors without memory": (
        {**spec(jvmOptions={"-Xmx": "2g"}, resources={"limits": {"memory": "2Gi"}}), "dataPlane": {"executors": 1}},
        "2Gi of memory leave an executor of A->B 0Mi beside its JVM's heap of 2g",
    ),
    "no quantity": (
        {**GOOD, "dataPlane": {"executors": 1, "executorResources": {"limits": {"memory": "2 GB"}}}},
        '"2 GB" is no quantity of memory',
    ),
    "a list where a text belongs": (mirror(topicsPattern=["a"]), "at '/spec/mirrors/0/topicsPattern': got array"),
    "a version of Strimzi's that the kind has not": (
        {**GOOD, "apiVersion": "kafka.strimzi.io/v1beta1"},
        'apiVersion is "kafka.strimzi.io/v1beta1": KafkaMirrorMaker2 has kafka.strimzi.io/v1alpha1, ',
    ),
    "the first of several documents": (
        {**GOOD, "kind": "KafkaUser"},
        "Helm reads the first one alone, and no List: lockstep config convert FILE --to resource prints",
    ),
    "a list of objects": (
        {"kind": "List", "apiVersion": "v1", "items": [GOOD]},
        'kind is "List": it takes KafkaMirrorMaker2 or KafkaMirrorMaker',
    ),
    "an object without a spec": (
        {"kind": "ConfigMap", "data": {"a": "b"}},
        'kind is "ConfigMap": it takes KafkaMirrorMaker2',
    ),
    "a text where a number belongs": (spec(replicas="three"), "at '/spec/replicas': got string, want null or integer"),
    "a list where a mapping belongs": (spec(template=[]), "at '/spec/template': got array"),
    "a mapping where a list belongs": (spec(mirrors={}), "at '/spec/mirrors': got object"),
    "a heap that is none": (spec(jvmOptions={"-Xmx": "a lot"}), "at '/spec/jvmOptions/-Xmx'"),
    "fewer executors than none": ({**GOOD, "dataPlane": {"executors": -1}}, "at '/dataPlane/executors': minimum"),
    "a typo at the top": ({**GOOD, "servces": {}}, "additional properties 'servces' not allowed"),
    "a typo in a service": (
        {**GOOD, "services": {"checkpoint": {"replcas": 2}}},
        "at '/services/checkpoint': additional properties 'replcas' not allowed",
    ),
    "a typo in the name of a service": (
        {**GOOD, "services": {"checkpoints": {}}},
        "at '/services': additional properties 'checkpoints' not allowed",
    ),
    "a typo in a flow": ({**GOOD, "flows": {"A-B": {}}}, "at '/flows': additional properties 'A-B' not allowed"),
    "a typo in a probe": (
        spec(livenessProbe={"initialDelay": 5}),
        "at '/spec/livenessProbe': additional properties 'initialDelay' not allowed",
    ),
    "a word that is none": ({**GOOD, "logFormat": "xml"}, "at '/logFormat'"),
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Return what Helm says to each; it is asked about several at once."""
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(CASES, pool.map(lambda case: refused(case[0]), CASES.values()), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_with_a_sentence(case: str, said: dict[str, str]) -> None:
    assert CASES[case][1] in said[case]


@pytest.mark.parametrize("side", ["consumer", "producer"])
def test_a_mirror_maker_1_without_servers_is_refused(side: str) -> None:
    assert f"spec.{side}.bootstrapServers is missing" in refused(LEGACY, sets=(f"spec.{side}.bootstrapServers=",))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.jaas.config", LOGIN.replace("changeit", "${secrets:kafka/me:password}")),
        ("sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"),
        ("ssl.truststore.password", "${file:/etc/more/passwords.properties:truststore}"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example.org/token"),
        ("sasl.client.callback.handler.class", "org.example.Handler"),
    ],
)
def test_settings_with_references_are_no_secrets_in_clear_text(key: str, value: str) -> None:
    rendered({**GOOD, "settings": {f"A.{key}": value}})
