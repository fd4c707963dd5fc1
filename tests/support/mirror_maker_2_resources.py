"""A KafkaMirrorMaker2 in its old and in its new form."""

OLD = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror, namespace: kafka}
spec:
  connectCluster: B
  clusters:
  - alias: A
    bootstrapServers: a:9092
    config: {{{source}}}
  - alias: B
    bootstrapServers: b:9092
    config: {{{target}}}
  mirrors:
  - sourceCluster: A
    targetCluster: B
    {mirror}
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  replicas: 1
  target:
    alias: B
    bootstrapServers: b:9092
    groupId: my-group
    configStorageTopic: my-configs
    offsetStorageTopic: my-offsets
    statusStorageTopic: my-status
  mirrors:
  - source: {alias: A, bootstrapServers: "a:9092"}
    sourceConnector: {}
    checkpointConnector: {}
"""
ALL = "sourceConnector: {}\n    checkpointConnector: {}\n    heartbeatConnector: {}"


def old(mirror: str = ALL, source: str = "", target: str = "") -> str:
    text = OLD.replace("{name: mirror, namespace: kafka}", "{{name: mirror, namespace: kafka}}")
    return text.format(mirror=mirror, source=source, target=target)
