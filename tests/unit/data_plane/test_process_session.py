"""What is loaded before Spark's JVM is launched, and what never is."""

import json
import subprocess
import sys


def modules_after(statements: str) -> set[str]:
    """The modules that a Python of its own has after it has executed the statements."""
    code = (
        f"{statements}\nimport json, sys\nprint(json.dumps([name for name, module in sys.modules.items() if module]))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(json.loads(printed.splitlines()[-1]))


def test_session_of_the_process_is_there_before_the_driver_is_loaded() -> None:
    loaded = modules_after("import lockstep_data_plane.spark.process_session")
    assert not loaded & {"lockstep_data_plane.driver.driver", "kio", "faust", "aiokafka", "confluent_kafka"}
    assert "lockstep_data_plane.spark.session" in loaded


def test_kio_is_loaded_without_hypothesis_which_remains_usable() -> None:
    load = "from lockstep_kafka.messages.kio_loader import load_kio\nload_kio()"
    loaded = modules_after(load)
    assert "kio.static.primitive" in loaded
    assert "hypothesis" not in loaded
    assert "hypothesis.core" in modules_after(f"{load}\nimport hypothesis")


def test_hypothesis_loaded_before_kio_is_left_alone() -> None:
    load = "import hypothesis\nfrom lockstep_kafka.messages.kio_loader import load_kio\nload_kio()"
    assert {"hypothesis.core", "kio.serial"} <= modules_after(load)
