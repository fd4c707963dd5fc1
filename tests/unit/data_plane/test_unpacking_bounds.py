"""A few bytes that say they are gigabytes take little memory: what comes out is bounded where it is unpacked."""

import struct
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.record_batch import compiled_rebuild, layout, rebuild
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import UNPACKED_AT_MOST, decompress
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, scan_groups
from lockstep_data_plane.record_batch.rebuild import read_records
from tests.support.batch_bytes import COMPRESS, GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, ZSTD, batch, batch_bytes, record
from tests.unit.data_plane.partition_steps import admit, copied, partition

MIB = 1 << 20

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_than_the_bound_is_unpacked(codec: int) -> None:
    packed = COMPRESS[codec](bytes(3 * MIB))
    assert bytes(decompress(packed, codec, 3 * MIB)) == bytes(3 * MIB)
    for at_most in (0, 1, MIB, 3 * MIB - 1):
        with pytest.raises(CorruptRecordError, match=f"into {at_most} bytes"):
            decompress(packed, codec, at_most)


def test_gzip_of_many_members_is_bounded_as_a_whole() -> None:
    packed = COMPRESS[GZIP](b"x" * 100) * 300 + bytes(7)
    assert bytes(decompress(packed, GZIP, 30_000)) == b"x" * 30_000
    with pytest.raises(CorruptRecordError):
        decompress(packed, GZIP, 29_999)


@pytest.mark.parametrize("block", [b"\xff\xff\xff\xff\x0fabc", b"\xff\xff\xff\xff\x0f"])
@pytest.mark.parametrize("xerial", [True, False])
def test_snappy_block_of_4_gib_is_refused_before_it_is_allocated(block: bytes, xerial: bool) -> None:
    assert cramjam.snappy.decompress_raw_len(block) == 2**32 - 1
    front = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) if xerial else b""
    with pytest.raises(CorruptRecordError, match="there are more"):
        decompress(front + block, SNAPPY, UNPACKED_AT_MOST)


def bomb(place: int, codec: int) -> Batch:
    """One record of 30 MiB of zeros: a kilobyte as zstd."""
    return batch([record(place, bytes(30 * MIB))], codec=codec)


def test_small_batches_of_many_bytes_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging a second one would unpack it."""
    for without_compiled in (False, True):
        if without_compiled:
            for module in (rebuild, compiled_rebuild, layout):
                monkeypatch.setattr(module, "find_compiled", lambda: None)
        source = bytes(bomb(0, ZSTD).data)
        assert len(source) < 4096
        log = b"".join(struct.pack(">q", place) + source[8:] for place in range(15))
        batches = list(scan_groups(log, any_producer=True))
        p = partition()
        admit(p, *batches, source_end=15)
        assert [bytes(sent.data)[61:] for sent in copied(p)] == [source[61:]] * 15
        assert p.row().upstream == 14


@pytest.mark.parametrize("codec", CODECS)
def test_batch_above_the_bound_is_refused_where_it_has_to_be_unpacked(codec: int) -> None:
    limits = TargetLimits(100_000)
    packed = batch([record(0, bytes(limits.unpacked_at_most))], codec=codec, attributes=LOG_APPEND_TIME)
    p = partition(limits=limits)
    admit(p, packed, source_end=100)
    assert p.phase is Phase.DRAINING
    assert f"offsets 0 to 0: its records cannot be decompressed into {limits.unpacked_at_most} bytes" in p.row().reason
    assert p.refusal is not None
    assert p.refusal.ranges == ((0, 0),)


def test_more_records_than_memory_holds_are_refused() -> None:
    """Each of seven bytes becomes an object of more than a hundred."""
    many = batch([record(0)])._replace(record_count=UNPACKED_AT_MOST // rebuild.RECORD_BYTES + 1)
    with pytest.raises(CorruptRecordError, match="records, more than"):
        read_records(many)


def test_bombs_fit_into_little_memory(tmp_path: Path) -> None:
    """In a process of its own, which may take less than they unpack to: a refused allocation would end it."""
    for codec in CODECS:
        for name, size in (("small", 30 * MIB), ("large", 160 * MIB)):
            (tmp_path / f"{codec}.{name}").write_bytes(batch_bytes([record(0, bytes(size))], codec=codec))
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert (ran.returncode, ran.stdout) == (0, "fits\n"), ran.stderr[-2000:]


LIMITED = """
import resource, sys
from pathlib import Path
from tests.unit.data_plane.partition_steps import admit, copied, partition
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import scan
files = sorted(Path(sys.argv[1]).iterdir())
bombs = [(file.name, *scan(file.read_bytes())) for file in files]
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[0])
most = pages * resource.getpagesize() + 150 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for name, bomb in bombs:
    if "small" in name:
        p = partition()
        admit(p, bomb, bomb._replace(base_offset=1), source_end=100)
        copied(p)
    else:
        p = partition(limits=TargetLimits(codec=4 if name.startswith("3") else 3, recompress=True))
        admit(p, bomb, source_end=100)
        assert p.refusal is not None and "cannot be decompressed into" in p.row().reason, (name, p.row().reason)
print("fits")
"""
