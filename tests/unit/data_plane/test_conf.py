"""What Spark is started with, by where the slots run."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import javaproperties
import pytest

from lockstep_config.keys.spark_settings import PINNED, SparkSettings
from lockstep_data_plane.spark.conf import Pod, executors_python, settings_for, without_secrets
from lockstep_data_plane.spark.jvm_tempdir import secret_conf_file
from lockstep_data_plane.spark.session import StderrFilter, exit_words

OWN = "/opt/lockstep/bin/python"


def standalone(**conf: str) -> SparkSettings:
    return SparkSettings(master="spark://m:7077", conf={key.replace("_", "."): value for key, value in conf.items()})


def kubernetes(**conf: str) -> SparkSettings:
    return SparkSettings(master="k8s://https://k", conf={key.replace("_", "."): value for key, value in conf.items()})


def test_without_a_master_there_is_a_place_for_each_slot_and_two_more() -> None:
    found = settings_for(SparkSettings(), 3, Pod())
    assert found["spark.master"] == "local[5,1]"
    assert found["spark.driver.host"] == "127.0.0.1", "nobody else's to connect to"


def test_sparks_pages_are_off_where_they_would_listen_on_every_address() -> None:
    assert "spark.ui.enabled" not in settings_for(SparkSettings(), 2, Pod()), "bound to loopback"
    for spark in (standalone(), kubernetes()):
        assert settings_for(spark, 2, Pod())["spark.ui.enabled"] == "false"
    assert settings_for(standalone(spark_ui_enabled="true"), 2, Pod())["spark.ui.enabled"] == "true"


@pytest.mark.parametrize("spark", [SparkSettings(), standalone(), kubernetes()])
def test_pinned_spark_settings_override_the_file(spark: SparkSettings) -> None:
    wild = SparkSettings(master=spark.master, conf={key: "wild" for key, pin in PINNED.items() if pin.value})
    found = settings_for(wild, 2, Pod())
    assert {key: found[key] for key, pin in PINNED.items() if pin.value} == {
        key: pin.value for key, pin in PINNED.items() if pin.value
    }


@pytest.mark.parametrize("spark", [SparkSettings(), standalone(), kubernetes()])
def test_sparks_ports_are_authenticated_and_encrypted_beyond_this_machine(spark: SparkSettings) -> None:
    found = settings_for(replace(spark, conf={"spark.network.crypto.enabled": "false"}), 2, Pod())
    assert found["spark.authenticate"] == "true"
    assert found["spark.network.crypto.enabled"] == ("true" if spark.master else "false")


def test_standalone_spark_has_two_cores_more_than_slots() -> None:
    found = settings_for(standalone(), 4, Pod())
    assert found["spark.cores.max"] == "6"
    assert "spark.driver.host" not in found, "Spark knows by which of its names others reach it"
    assert settings_for(standalone(spark_cores_max="2"), 4, Pod())["spark.cores.max"] == "2"


@pytest.mark.parametrize(("slots", "cores", "pods"), [(4, "", 4), (4, "4", 1), (5, "2", 3), (1, "8", 1)])
def test_pods_follow_from_slots_and_cores(slots: int, cores: str, pods: int) -> None:
    spark = kubernetes(spark_executor_cores=cores) if cores else kubernetes()
    found = settings_for(spark, slots, Pod())
    assert int(found["spark.executor.instances"]) == pods
    assert float(found["spark.executor.memoryOverheadFactor"]) == int(cores or 1), "memory for each slot's Python"


def test_executors_belong_to_the_drivers_pod() -> None:
    found = settings_for(kubernetes(), 1, Pod("data-plane-0", "mirror"))
    assert found["spark.kubernetes.driver.pod.name"] == "data-plane-0"
    assert found["spark.kubernetes.namespace"] == "mirror"
    outside = settings_for(kubernetes(), 1, Pod())
    assert not {"spark.kubernetes.driver.pod.name", "spark.kubernetes.namespace"} & outside.keys()


def test_driver_asks_kubernetes_for_pods_alone_by_default() -> None:
    key = "spark.kubernetes.executor.disableConfigMap"
    assert settings_for(kubernetes(), 1, Pod())[key] == "true"
    assert settings_for(kubernetes(spark_kubernetes_executor_disableConfigMap="false"), 1, Pod())[key] == "false"


def test_a_lost_executor_never_ends_the_driver() -> None:
    for spark in (standalone(), kubernetes()):
        assert int(settings_for(spark, 1, Pod())["spark.executor.maxNumFailures"]) > 1_000_000


@pytest.mark.parametrize(
    ("conf", "python"),
    [
        ({}, OWN),
        ({"spark.archives": "s3a://b/env.tar.gz#lock"}, "./lock/bin/python"),
        ({"spark.archives": "jdk.zip,env.tar.gz#environment"}, "./environment/bin/python"),
        ({"spark.archives": "jdk.zip"}, OWN),
        ({"spark.archives": "env.tar.gz#lock", "spark.pyspark.python": "/usr/bin/python3.12"}, "/usr/bin/python3.12"),
    ],
)
def test_the_executors_python(conf: dict[str, str], python: str) -> None:
    found = settings_for(SparkSettings(master="spark://m:7077", conf=conf), 1, Pod())
    assert executors_python(found, OWN) == python


def test_local_slots_take_the_drivers_python() -> None:
    conf = {"spark.archives": "env.tar.gz#lock"}
    assert executors_python(settings_for(SparkSettings(conf=conf), 1, Pod()), OWN) == OWN


@pytest.mark.parametrize(
    ("status", "words"), [(-9, "killed by SIGKILL"), (-15, "killed by SIGTERM"), (1, "exit status 1")]
)
def test_exit_words_of_a_jvm(status: int, words: str) -> None:
    assert exit_words(status) == words


def test_jvm_that_ended_without_a_message_was_killed() -> None:
    assert "something killed it" in StderrFilter().explain("Spark's JVM ended while it started")


def test_no_secret_is_left_for_the_command_line() -> None:
    conf = {"spark.authenticate.secret": "s", "spark.ssl.keyPassword": "p", "spark.executor.memory": "1g"}
    shown, secrets = without_secrets(settings_for(SparkSettings(conf=conf), 1, Pod()))
    assert secrets == {"spark.authenticate.secret": "s", "spark.ssl.keyPassword": "p"}
    assert shown["spark.executor.memory"] == "1g"


def test_spark_secrets_are_in_a_private_file_that_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    with secret_conf_file({"spark.authenticate.secret": "sé cret=1"}, tmp_path):
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        (file,) = tmp_path.iterdir()
        assert arguments == f"--properties-file {file} --load-spark-defaults --packages a:b:1 pyspark-shell"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert javaproperties.loads(file.read_text()) == {"spark.authenticate.secret": "sé cret=1"}
    assert list(tmp_path.iterdir()) == []
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--packages a:b:1 pyspark-shell"


def test_without_secrets_there_is_no_file(tmp_path: Path) -> None:
    with secret_conf_file({}, tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_java_options_of_the_file_override_ours_and_may_replace_the_gc() -> None:
    found = settings_for(kubernetes(spark_driver_defaultJavaOptions="-Xss2m -XX:+UseG1GC"), 2, Pod())
    options = found["spark.driver.extraJavaOptions"].split()
    assert "-XX:+UseSerialGC" not in options
    assert options.index("-Xss512k") < options.index("-Xss2m")
    assert any(option.startswith("-Dlog4j2.configurationFile=") for option in options)
    assert "spark.driver.defaultJavaOptions" not in found
    assert "-XX:+UseSerialGC" in found["spark.executor.extraJavaOptions"], "nothing was said of the executors"
    chosen = {"spark_driver_defaultJavaOptions": "-Xss2m", "spark_driver_extraJavaOptions": "-Da=b"}
    both = settings_for(kubernetes(**chosen), 2, Pod())
    assert both["spark.driver.defaultJavaOptions"] == "-Xss2m"
    assert both["spark.driver.extraJavaOptions"] == "-Da=b"
