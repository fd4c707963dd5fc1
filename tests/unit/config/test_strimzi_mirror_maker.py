"""`KafkaMirrorMaker`, which ran MirrorMaker 1, as the lines of a legacy flow."""

import pytest

from tests.support.strimzi_resources import Resources

TEXT = """\
apiVersion: kafka.strimzi.io/{version}
kind: KafkaMirrorMaker
metadata: {{name: mirror}}
spec:
  replicas: 1
  consumer:
    bootstrapServers: a:9092
    groupId: my-group
    {consumer}
  producer:
    bootstrapServers: b:9092
    {producer}
  {topics}
"""


def text(consumer: str = "", producer: str = "", topics: str = 'whitelist: ".*"', version: str = "v1beta2") -> str:
    return TEXT.format(version=version, consumer=consumer, producer=producer, topics=topics)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
def test_the_fewest_fields_in_each_api_version(resources: Resources, version: str) -> None:
    assert resources.entries(text(version=version)) == {
        "clusters": "source, target",
        "source->target.enabled": "true",
        "target->source.emit.heartbeats.enabled": "false",
        "source.bootstrap.servers": "a:9092",
        "target.bootstrap.servers": "b:9092",
        "source->target.lockstep.legacy.group": "my-group",
        "source->target.topics": ".*",
        "target.group.id": "my-group",
        "target.offset.storage.topic": "mm2-offsets-my-group.source.internal",
    }


def test_kafka_mirror_maker_fields_become_properties(resources: Resources) -> None:
    entries = resources.entries(
        text(
            "numStreams: 3\n    offsetCommitInterval: 120000\n    "
            "config: {max.poll.records: 100, ssl.protocol: TLSv1.3}",
            "abortOnSendFailure: false\n    tls: {}\n    config: {compression.type: gzip}",
        )
    )
    assert entries["source->target.tasks.max"] == "3"
    assert entries["source->target.lockstep.legacy.offset.commit.interval.ms"] == "120000"
    assert entries["source->target.lockstep.legacy.abort.on.send.failure"] == "false"
    assert entries["source.consumer.max.poll.records"] == "100"
    assert entries["source.ssl.protocol"] == "TLSv1.3", "let through by later releases of Strimzi"
    assert entries["target.producer.compression.type"] == "gzip"
    assert entries["target.security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("topics", "value"),
    [
        ('whitelist: "my-topic|other-topic"', "my-topic|other-topic"),
        ('whitelist: "*"', ".*"),
        ("whitelist: 'a, b.*,a'", "a, b.*"),
        ("whitelist: '\"a|b\"'", "a|b"),
        ("include: x", "x"),
        ("include: x\n  whitelist: y", "x"),
    ],
)
def test_kafka_mirror_maker_topics_become_a_pattern(resources: Resources, topics: str, value: str) -> None:
    assert resources.entries(text(topics=topics))["source->target.topics"] == value


@pytest.mark.parametrize("key", ["ssl.truststore.location", "sasl.mechanism", "security.protocol", "bootstrap.servers"])
def test_kafka_mirror_maker_reserved_key_is_ignored_with_a_note(resources: Resources, key: str) -> None:
    remarks = resources.remarks(text(f"config: {{{key}: x}}", f"config: {{{key}: x}}"))
    assert sum(f"config.{key}: is ignored, as Strimzi does" in remark for remark in remarks) == 2


def test_the_consumers_group_is_a_field(resources: Resources) -> None:
    assert "config.group.id: is ignored" in resources.remarked(text("config: {group.id: x}"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (text(topics="version: 2.5.0"), "spec.whitelist: is missing: write a regular expression for topics, or * for"),
        (text(topics='whitelist: ""'), "spec.whitelist: names no topic"),
        (
            text(topics="whitelist: x\n  include: y", version="v1beta1"),
            "include: is a field of v1beta2, not of v1beta1",
        ),
        (text().replace("    groupId: my-group\n", ""), "spec.consumer.groupId: is missing: `lockstep.legacy.group`"),
        (
            text().replace("    bootstrapServers: b:9092\n", "    config: {}\n"),
            "spec.producer.bootstrapServers: is empty: wr",
        ),
        (text("numStreams: 0"), "9 spec.consumer.numStreams: is 0: the least it may be is 1"),
        (
            text("config: {isolation.levle: 1}"),
            "spec.consumer.config.isolation.levle: is no key that MirrorMaker or Locks",
        ),
        (text(producer="abortOnSendFailure: maybe"), "abortOnSendFailure: is a text, but takes true or false"),
        (text(producer="numStreams: 1"), "spec.producer.numStreams: is no field that Strimzi has there"),
        (text()[: text().index("  producer:")] + "  whitelist: x\n", "spec.producer: is missing: the cluster `target`"),
    ],
)
def test_mistake_in_a_resource_is_refused(resources: Resources, changed: str, said: str) -> None:
    mistakes = resources.mistakes(changed)
    assert any(said in mistake for mistake in mistakes), mistakes
