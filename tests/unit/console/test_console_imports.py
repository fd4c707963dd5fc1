"""What a console holds that was never asked for anything."""

import subprocess
import sys

LARGE = ("faust", "hypothesis", "lockstep_data_plane", "lockstep_ops.plan.planner", "pandas", "pyarrow", "pyspark")


def test_console_imports_nothing_large_that_it_may_never_need() -> None:
    code = (
        "import sys, lockstep_console.process;"
        f"print([name for name in sys.modules if name.startswith({LARGE!r})], end='')"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert loaded == "[]"
