"""The values file of the tests: a Strimzi resource, as somebody who comes from Strimzi has it."""

from typing import Any

ONE = {f"{topic}.storage.replication.factor": 1 for topic in ("config", "offset", "status")}


def mirror_maker(source: str, target: str, topics: str = "orders.*", name: str = "mirror") -> dict[str, Any]:
    """Return a KafkaMirrorMaker2 from cluster `a` to cluster `b`, small enough for a node of two cores."""
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": name, "labels": {"team": "payments"}},
        "spec": {
            "version": "4.1.0",
            "replicas": 1,
            "connectCluster": "b",
            "clusters": [
                {"alias": "a", "bootstrapServers": source},
                {"alias": "b", "bootstrapServers": target, "config": ONE},
            ],
            "mirrors": [
                {
                    "sourceCluster": "a",
                    "targetCluster": "b",
                    "topicsPattern": topics,
                    "groupsPattern": ".*",
                    "sourceConnector": {
                        "tasksMax": 2,
                        "config": {
                            "replication.factor": 1,
                            "offset-syncs.topic.replication.factor": 1,
                            "sync.topic.acls.enabled": "true",
                            "refresh.topics.interval.seconds": 2,
                        },
                    },
                    "heartbeatConnector": {"config": {"heartbeats.topic.replication.factor": 1}},
                    "checkpointConnector": {
                        "config": {
                            "checkpoints.topic.replication.factor": 1,
                            "sync.group.offsets.enabled": "true",
                            "emit.checkpoints.interval.seconds": 1,
                            "sync.group.offsets.interval.seconds": 1,
                        }
                    },
                }
            ],
            "rack": {"topologyKey": "kubernetes.io/hostname"},
            "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "1536Mi"}},
        },
    }
