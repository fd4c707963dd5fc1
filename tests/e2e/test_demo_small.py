"""`make demo` in small: five seconds of traffic, the same comparison, and nothing left of it afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools.demo.__main__ import arguments

DEMO_WITHIN = 600.0  # half a minute on a quiet machine; other tests may share the cores


@pytest.mark.timeout(DEMO_WITHIN + 60)
def test_demo_proves_its_claims_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.demo", "--duration", "5"],
        capture_output=True,
        text=True,
        timeout=DEMO_WITHIN,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Everything held." in ran.stdout
    for topic in ("A->B orders", "A->B payments", "A->B customers", "B->A shipments", "B->A stock"):
        assert f"ok      {topic}: key, value, headers, timestamp and order are equal" in ran.stdout
    assert list(tmp_path.glob("lockstep-demo-*")) == []
    assert list(tmp_path.glob("lockstep-broker-*")) == []
    assert [one.info["cmdline"] for one in psutil.process_iter(["cmdline"]) if _started_by(one, tmp_path)] == []


def test_demo_arguments_override_those_of_make() -> None:
    assert vars(arguments([], {})) == {"duration": 30.0, "keep": False}
    given = arguments([], {"DURATION": "120", "KEEP": "1"})
    assert vars(given) == {"duration": 120.0, "keep": True}
    given = arguments(["--duration", "5"], {"DURATION": "120", "KEEP": ""})
    assert vars(given) == {"duration": 5.0, "keep": False}


def _started_by(process: psutil.Process, folder: Path) -> bool:
    """Was the process started by the demo? It hands its own temporary folder down to all of them."""
    try:
        return process.environ().get("TMPDIR") == str(folder)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return False
