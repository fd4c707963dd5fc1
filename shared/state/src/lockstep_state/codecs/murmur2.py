"""The hash by which Kafka's Java clients choose a partition.

Connect's offsets depend on it (`mm2-behaviour.md` §1.7).
"""

SEED = 0x9747B28C
MIX = 0x5BD1E995
WORD = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of `data` as Java has it: a signed int."""
    length = len(data)
    h = SEED ^ length
    aligned = length & ~3
    for begin in range(0, aligned, 4):
        k = int.from_bytes(data[begin : begin + 4], "little") * MIX & WORD
        k = (k ^ k >> 24) * MIX & WORD
        h = (h * MIX & WORD) ^ k
    if aligned < length:
        h = (h ^ int.from_bytes(data[aligned:], "little")) * MIX & WORD
    h = (h ^ h >> 13) * MIX & WORD
    h ^= h >> 15
    return h - (1 << 32) if h & 0x80000000 else h


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition that Java's default partitioner chooses for a key. Raises ValueError if there are none."""
    if partitions < 1:
        raise ValueError(f"a key needs at least one partition to go to, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions
