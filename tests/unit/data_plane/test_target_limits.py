"""What a target topic takes, and how batches for it are compressed where that is asked for."""

from dataclasses import replace

import pytest

from lockstep_config.flow.model import CompressionSettings, DataPlaneSettings
from lockstep_data_plane.record_batch.classify import BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, CompressionLevels
from lockstep_data_plane.slot.target_limits import target_limits
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.batch_bytes import GZIP, LZ4, SNAPPY, ZSTD, batch, records

TOPIC = MirroredTopic(source_topic="t", target_topic="A.t")
AS_THEY_COME = DataPlaneSettings()


def with_codec(codec: str | None, *, recompress: str = "auto") -> DataPlaneSettings:
    return DataPlaneSettings(compression_type=codec, compression=CompressionSettings(recompress=recompress))


def test_topic_limits_default_to_those_of_kafka_without_recompression() -> None:
    assert target_limits(AS_THEY_COME, TOPIC) == TargetLimits(1_048_588, 0, recompress=False, levels=JAVAS_LEVELS)


def test_the_topics_own_limit_counts() -> None:
    topic = replace(TOPIC, target_configs=(("cleanup.policy", "compact"), ("max.message.bytes", "2600")))
    assert target_limits(AS_THEY_COME, topic).max_bytes == 2600


@pytest.mark.parametrize(
    ("word", "codec"), [("none", 0), ("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD)]
)
@pytest.mark.parametrize("recompress", ["auto", "never", "true", "false"])
def test_topic_limits_have_the_explicit_compression_type(word: str, codec: int, recompress: str) -> None:
    limits = target_limits(with_codec(word, recompress=recompress), TOPIC)
    assert (limits.codec, limits.recompress) == (codec, recompress == "true")
    assert limits.choose_codec(0) == codec
    assert limits.choose_codec(LZ4) == (codec if recompress == "true" else LZ4)


def test_topic_limits_without_compression_type_have_no_recompression() -> None:
    """`none` is a choice too, and its absence is not that."""
    assert not target_limits(with_codec(None, recompress="true"), TOPIC).recompress


def test_levels_are_the_producers() -> None:
    plane = DataPlaneSettings(compression=CompressionSettings(gzip_level=1, lz4_level=12, zstd_level=22))
    assert target_limits(plane, TOPIC).levels == CompressionLevels(1, 12, 22)


@pytest.mark.parametrize(
    ("count", "more", "action"), [(3, 0, BatchAction.PASS), (3, -1, BatchAction.REBUILD), (1, -1, BatchAction.PASS)]
)
def test_guess_splits_only_batches_of_several_records(count: int, more: int, action: BatchAction) -> None:
    source = batch(records(10, count))
    assert classify(source, 10, TargetLimits(split_above=len(source.data) + more), aborted=False)[0] is action
