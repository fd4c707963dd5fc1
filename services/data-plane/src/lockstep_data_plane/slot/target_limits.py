"""The limits that the target sets for the batches of a topic's copy (no I/O)."""

from lockstep_config.flow.model import DataPlaneSettings
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import CODECS, CompressionLevels
from lockstep_rules.record_rules import RecordRules
from lockstep_state.rows.state_rows import MirroredTopic


def target_limits(
    plane: DataPlaneSettings,
    topic: MirroredTopic,
    refused_codecs: frozenset[int] = frozenset(),
    rules: RecordRules | None = None,
) -> TargetLimits:
    """Return the limits of a topic's copy.

    They follow from the topic's configs as topic-sync last saw them, the producer's `compression.*` settings, and the
    codecs that the target has refused so far. `rules` are those of the topic's records.
    """
    configs = dict(topic.target_configs)
    codec, compression = plane.compression_type, plane.compression
    return TargetLimits(
        int(configs.get("max.message.bytes", TargetLimits().max_bytes)),
        CODECS[codec or "none"],
        recompress=compression.recompress == "true" and codec is not None,
        levels=CompressionLevels(compression.gzip_level, compression.lz4_level, compression.zstd_level),
        tombstones_kept_ms=int(configs.get("delete.retention.ms", 0)),
        refused_codecs=refused_codecs,
        rules=rules,
    )
