"""The compiled module under the address sanitizer: hostile batches read no byte beyond their own, nothing overflows."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch import compiled_module
from tests.support.source_modules import REPOSITORY

SOURCE = Path(compiled_module.__file__).with_name("compiled_records.c")
SEED = os.environ.get("SEED") or "57"
"""SEED=4711 tries another one."""

CHECKED = """
import importlib.util, sys
from itertools import islice

path, seed = sys.argv[1], int(sys.argv[2])
name = "lockstep_data_plane.record_batch.compiled_records"
spec = importlib.util.spec_from_file_location(name, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules[name] = module
import lockstep_data_plane.record_batch
lockstep_data_plane.record_batch.compiled_records = module

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_rules.record_rules import AddHeader, DropHeaders, DropRecord, HasHeader, IsTombstone, RecordRules
from tests.support.hostile_batches import HostileBatches
from tests.unit.data_plane import test_hostile_batches as tests

assert find_compiled() is module and crc32c is module.crc32c
tests.LOGS = 500
for each in (seed, seed + 1):
    for grouped in (True, False):
        tests.test_hostile_batches_are_copied_or_refused_by_their_offset(each, grouped)
    tests.test_both_ways_to_read_and_rebuild_a_batch_make_the_same(each)
    tests.test_both_ways_to_merge_batches_make_the_same(each)
RULES = RecordRules((
    DropRecord((HasHeader("a*", True), IsTombstone())), DropHeaders("*", (HasHeader("b"),)), AddHeader("c", bytes(200)),
))
hostile = HostileBatches(seed)
for _ in range(3000):  # not even a whole batch, and not one that was judged before
    data = hostile.log()
    for cut in (data, data[: len(data) // 2], data[7:]):
        module.gather(cut, 0, 4096, 65536, True)
        module.join([cut], None)
        module.join_frames([cut])
        for rules in (b"", RULES.program):
            module.translate(cut, 0, -1, None, 0, (), rules)
            module.translate(cut, 1, 2**62, 2**62, 0, ((1, 2),), rules)
            for count in (-1, 1, 3, 2**40):
                module.renumber(cut[61:], count, 0, 5, 0, None, 0, (), rules)
        for rules in (cut[:80], RULES.program[: len(cut) % 90], RULES.program[:20] + cut[:40]):
            try:
                module.renumber(cut[61:], 3, 0, 5, 0, None, 0, (), rules)
            except ValueError:
                pass
        for count in (-1, 1, 3, 2**40):
            module.read(cut[61:], count, 2**63 - 1, 5, 2**63 - 1, None)
            module.read(cut[61:], count, 0, 2**31 - 1, -(2**63), 7)
        for size in range(0, min(len(cut), 80)):
            crc32c(cut[:size], 2**32 - 1)
print("clean")
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="no gcc with its sanitizers")
def test_hostile_batches_under_the_address_sanitizer_are_clean(tmp_path: Path) -> None:
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    built = tmp_path / "compiled_records.abi3.so"
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    command = ["gcc", "-g", "-O1", "-fPIC", "-shared", *sanitizers, f"-I{sysconfig.get_path('include')}"]
    subprocess.run([*command, "-o", str(built), str(SOURCE)], check=True)
    ran = subprocess.run(
        [sys.executable, "-c", CHECKED, str(built), SEED],
        env={
            **os.environ,
            "LD_PRELOAD": library.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "PYTHONMALLOC": "malloc",  # or Python's own pools hide what is read beyond an object
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "clean\n"), ran.stderr[-4000:]
