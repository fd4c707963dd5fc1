"""What the data plane's image runs, by what its pod was given."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ENTRYPOINT = Path(__file__).resolve().parents[3] / "deploy" / "images" / "data-plane-entrypoint"
WRAPPER = ("LD_PRELOAD", "NSS_WRAPPER_PASSWD", "NSS_WRAPPER_GROUP")
PASSED_ON = ("LOCKSTEP_SPARK_PROPERTIES", "SPARK_DRIVER_BIND_ADDRESS", *WRAPPER)
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
    printed: list[Any] = json.loads(ran.stdout)
    return printed[0], printed[1]


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


def with_accounts(folder: Path, known: str) -> dict[str, str]:
    """The environment of a service whose getent finds the `known` entries only (`passwd 10001 group 10001`)."""
    (folder / "getent").write_text(f'#!/bin/bash\n[[ " {known} " == *" $1 $2 "* ]] || exit 2\n')
    (folder / "getent").chmod(0o755)
    (folder / "libnss_wrapper.so").write_text("")
    more = {"TMPDIR": str(folder), "NSS_WRAPPER_LIBRARY": str(folder / "libnss_wrapper.so")}
    return started(f"{folder}:/usr/bin:/bin", **more)[1]


def test_entrypoint_user_without_an_entry_gets_one(path: str, tmp_path: Path) -> None:
    environment = with_accounts(tmp_path, "")
    assert environment["LD_PRELOAD"] == str(tmp_path / "libnss_wrapper.so")
    passwd = Path(environment["NSS_WRAPPER_PASSWD"]).read_text().splitlines()
    user, group = os.getuid(), os.getgid()
    assert passwd[-1] == f"lockstep:x:{user}:{group}:lockstep:/tmp:/usr/sbin/nologin"
    assert [line.split(":")[0] for line in passwd].count("lockstep") == 1
    groups = Path(environment["NSS_WRAPPER_GROUP"]).read_text().splitlines()
    assert f"group{group}:x:{group}:" in groups
    assert len(groups) > len(os.getgroups())


def test_entrypoint_user_with_an_entry_keeps_it(path: str, tmp_path: Path) -> None:
    assert with_accounts(tmp_path, f"passwd {os.getuid()}") == {}


def test_entrypoint_user_without_an_entry_and_wrapper_is_named(path: str, tmp_path: Path) -> None:
    (tmp_path / "getent").write_text("#!/bin/bash\nexit 2\n")
    (tmp_path / "getent").chmod(0o755)
    environment = {"PATH": path, "NSS_WRAPPER_LIBRARY": str(tmp_path / "none"), "TMPDIR": str(tmp_path)}
    ran = subprocess.run(["bash", ENTRYPOINT], env=environment, capture_output=True, text=True, check=True)
    if "LD_PRELOAD" not in json.loads(ran.stdout)[1]:
        assert f"user {os.getuid()} has no entry in /etc/passwd" in ran.stderr
