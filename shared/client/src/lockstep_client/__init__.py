"""MirrorMaker 2's client side in Python: translated offsets of consumer groups, and the clusters mirrored to a cluster.

Everything is asked of the *target* cluster of a flow, as with MM2's `MirrorClient` and `RemoteClusterUtils`, and reads
what MM2 and Lockstep write alike. `MirrorClient` is for several questions to one cluster, the functions are for one.
"""

from lockstep_client.checkpoints import RemoteOffsets
from lockstep_client.errors import (
    CheckpointsNotRead,
    CheckpointsTopicMissing,
    ClusterUnreachable,
    MirrorClientError,
    NotPermitted,
    RequestRefused,
    UnsupportedCheckpoint,
)
from lockstep_client.mirror_client import MirrorClient
from lockstep_client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    remote_consumer_offsets,
    remote_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_rules.renames import Rename
from lockstep_state.codecs.mm2_codec import Checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointsNotRead",
    "CheckpointsTopicMissing",
    "ClusterUnreachable",
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "MirrorClient",
    "MirrorClientError",
    "NotPermitted",
    "RemoteOffsets",
    "Rename",
    "ReplicationPolicy",
    "RequestRefused",
    "UnsupportedCheckpoint",
    "checkpoint_topics",
    "heartbeat_topics",
    "remote_consumer_offsets",
    "remote_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]
