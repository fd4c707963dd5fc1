"""The codecs of record batches, by the names that `compression.type` has. Pure."""

CODEC_NAMES = UNCOMPRESSED, GZIP, SNAPPY, LZ4, ZSTD = "none", "gzip", "snappy", "lz4", "zstd"
"""The codecs in the order of their numbers in the attributes of a batch. `none` is the name of no codec."""

INSTEAD_OF_REFUSED = (LZ4, GZIP, SNAPPY, ZSTD, UNCOMPRESSED)
"""The codecs that replace a refused one, in order of preference. The first that the target does not refuse is taken.

LZ4 costs least. Services that take few codecs take gzip, and everything takes uncompressed batches.
"""
