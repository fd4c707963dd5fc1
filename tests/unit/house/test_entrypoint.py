"""What the data plane's image runs, by what its pod was given."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ENTRYPOINT = Path(__file__).resolve().parents[3] / "deploy" / "images" / "data-plane-entrypoint"
PASSED_ON = ("LOCKSTEP_SPARK_PROPERTIES", "SPARK_DRIVER_BIND_ADDRESS")
STAND_IN = f"""#!/usr/bin/env python3
import json, os, sys
json.dump([sys.argv[1:], {{name: os.environ[name] for name in {PASSED_ON!r} if name in os.environ}}], sys.stdout)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which the service and java say what they were given."""
    for command in ("lockstep-data-plane", "java"):
        (tmp_path / command).write_text(STAND_IN)
        (tmp_path / command).chmod(0o755)
    return f"{tmp_path}:/usr/bin:/bin"


def started(path: str, *arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    ran = subprocess.run(
        ["bash", ENTRYPOINT, *arguments], env={"PATH": path, **environment}, capture_output=True, text=True, check=True
    )
    found: list[Any] = json.loads(ran.stdout)
    return found[0], found[1]


def test_the_service_gets_its_arguments(path: str) -> None:
    assert started(path, "--config", "m.yaml", "--flow", "A->B") == (["--config", "m.yaml", "--flow", "A->B"], {})


def test_a_submitted_driver_is_the_service_with_the_submitters_file(path: str) -> None:
    given = ("driver", "--properties-file", "/opt/spark/conf/spark.properties", "--class", "a.b.PythonRunner")
    arguments, passed_on = started(path, *given, "local:///x", "--flow", "A->B", SPARK_DRIVER_BIND_ADDRESS="10.0.0.9")
    assert arguments == ["--flow", "A->B"]
    assert passed_on == {
        "LOCKSTEP_SPARK_PROPERTIES": "/opt/spark/conf/spark.properties",
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.9",
    }


def test_entrypoint_executor_is_set_by_its_environment(path: str) -> None:
    names = ["MEMORY", "CORES", "ID", "POD_IP", "POD_NAME"]
    variables = {f"SPARK_EXECUTOR_{name}": name.lower() for name in names}
    more = {"SPARK_DRIVER_URL": "spark://d", "SPARK_APPLICATION_ID": "app", "SPARK_RESOURCE_PROFILE_ID": "0"}
    arguments, _ = started(path, "executor", SPARK_JAVA_OPT_0="-Da=b c", **variables, **more)
    assert arguments[:3] == ["-Da=b c", "-Xmsmemory", "-Xmxmemory"]
    assert arguments[arguments.index("--app-id") + 1] == "app"
