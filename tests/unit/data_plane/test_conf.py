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
from lockstep_data_plane.transform.jar import JAR, PLUGIN

OWN = "/opt/lockstep/bin/python"


def standalone(**conf: str) -> SparkSettings:
    return SparkSettings(master="spark://m:7077", conf={key.replace("_", "."): value for key, value in conf.items()})


def kubernetes(**conf: str) -> SparkSettings:
    return SparkSettings(master="k8s://https://k", conf={key.replace("_", "."): value for key, value in conf.items()})


ABSENT = None
K8S = "spark.kubernetes."
POD = Pod("data-plane-0", "mirror")


@pytest.mark.parametrize(
    ("spark", "slots", "pod", "expected"),
    [
        # A core for each slot and two more, at an address that only this machine reaches.
        (SparkSettings(), 3, Pod(), {"spark.master": "local[5,1]", "spark.driver.host": "127.0.0.1"}),
        # Spark's pages are off where they would listen on every address.
        (SparkSettings(), 2, Pod(), {"spark.ui.enabled": ABSENT}),
        (standalone(), 2, Pod(), {"spark.ui.enabled": "false"}),
        (kubernetes(), 2, Pod(), {"spark.ui.enabled": "false"}),
        (standalone(spark_ui_enabled="true"), 2, Pod(), {"spark.ui.enabled": "true"}),
        # Spark knows by which of its names others reach the driver.
        (standalone(), 4, Pod(), {"spark.cores.max": "6", "spark.driver.host": ABSENT}),
        (standalone(spark_cores_max="2"), 4, Pod(), {"spark.cores.max": "2"}),
        # Executors belong to the driver's pod.
        (kubernetes(), 1, POD, {f"{K8S}driver.pod.name": "data-plane-0", f"{K8S}namespace": "mirror"}),
        (kubernetes(), 1, Pod(), {f"{K8S}driver.pod.name": ABSENT, f"{K8S}namespace": ABSENT}),
        # The driver asks Kubernetes for pods alone by default.
        (kubernetes(), 1, Pod(), {f"{K8S}executor.disableConfigMap": "true"}),
        (
            kubernetes(**{f"{K8S}executor.disableConfigMap": "false"}),
            1,
            Pod(),
            {f"{K8S}executor.disableConfigMap": "false"},
        ),
        # A lost executor never ends the driver.
        (standalone(), 1, Pod(), {"spark.executor.maxNumFailures": str(2**31 - 1)}),
        (kubernetes(), 1, Pod(), {"spark.executor.maxNumFailures": str(2**31 - 1)}),
    ],
)
def test_spark_settings_by_master(spark: SparkSettings, slots: int, pod: Pod, expected: dict[str, str | None]) -> None:
    settings = settings_for(spark, slots, pod)
    assert {key: settings.get(key) for key in expected} == expected


@pytest.mark.parametrize("spark", [SparkSettings(), standalone(), kubernetes()])
def test_pinned_spark_settings_override_the_file(spark: SparkSettings) -> None:
    wild = SparkSettings(master=spark.master, conf={key: "wild" for key, pin in PINNED.items() if pin.value})
    settings = settings_for(wild, 2, Pod())
    assert {key: settings[key] for key, pin in PINNED.items() if pin.value} == {
        key: pin.value for key, pin in PINNED.items() if pin.value
    }


@pytest.mark.parametrize("spark", [SparkSettings(), standalone(), kubernetes()])
def test_sparks_ports_are_authenticated_and_encrypted_beyond_this_machine(spark: SparkSettings) -> None:
    settings = settings_for(replace(spark, conf={"spark.network.crypto.enabled": "false"}), 2, Pod())
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.network.crypto.enabled"] == ("true" if spark.master else "false")


@pytest.mark.parametrize(("slots", "cores", "pods"), [(4, "", 4), (4, "4", 1), (5, "2", 3), (1, "8", 1)])
def test_pods_follow_from_slots_and_cores(slots: int, cores: str, pods: int) -> None:
    spark = kubernetes(spark_executor_cores=cores) if cores else kubernetes()
    settings = settings_for(spark, slots, Pod())
    assert int(settings["spark.executor.instances"]) == pods
    assert float(settings["spark.executor.memoryOverheadFactor"]) == int(cores or 1), "memory for each slot's Python"


@pytest.mark.parametrize(
    ("spark", "python"),
    [
        (standalone(), OWN),
        (standalone(spark_archives="s3a://b/env.tar.gz#lock"), "./lock/bin/python"),
        (standalone(spark_archives="jdk.zip,env.tar.gz#environment"), "./environment/bin/python"),
        (standalone(spark_archives="jdk.zip"), OWN),
        (
            standalone(spark_archives="env.tar.gz#lock", spark_pyspark_python="/usr/bin/python3.12"),
            "/usr/bin/python3.12",
        ),
        (SparkSettings(conf={"spark.archives": "env.tar.gz#lock"}), OWN),
    ],
)
def test_the_executors_python(spark: SparkSettings, python: str) -> None:
    assert executors_python(settings_for(spark, 1, Pod()), OWN) == python


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
    settings = settings_for(kubernetes(spark_driver_defaultJavaOptions="-Xss2m -XX:+UseG1GC"), 2, Pod())
    options = settings["spark.driver.extraJavaOptions"].split()
    assert "-XX:+UseSerialGC" not in options
    assert options.index("-Xss512k") < options.index("-Xss2m")
    assert any(option.startswith("-Dlog4j2.configurationFile=") for option in options)
    assert "spark.driver.defaultJavaOptions" not in settings
    assert "-XX:+UseSerialGC" in settings["spark.executor.extraJavaOptions"], "nothing was said of the executors"
    chosen = {"spark_driver_defaultJavaOptions": "-Xss2m", "spark_driver_extraJavaOptions": "-Da=b"}
    both = settings_for(kubernetes(**chosen), 2, Pod())
    assert both["spark.driver.defaultJavaOptions"] == "-Xss2m"
    assert both["spark.driver.extraJavaOptions"] == "-Da=b"


@pytest.mark.parametrize(
    ("spark", "side"), [(SparkSettings(), "driver"), (standalone(), "executor"), (kubernetes(), "executor")]
)
def test_jvms_of_slots_evaluate_transforms_with_all_compilers(spark: SparkSettings, side: str) -> None:
    plain, evaluating = settings_for(spark, 2, Pod()), settings_for(spark, 2, Pod(), evaluates=True)
    assert evaluating["spark.jars"] == str(JAR)
    assert evaluating["spark.plugins"] == PLUGIN
    options = f"spark.{side}.extraJavaOptions"
    assert "TieredStopAtLevel" in plain[options]
    assert "TieredStopAtLevel" not in evaluating[options]
    assert (plain[f"spark.{side}.memory"], evaluating[f"spark.{side}.memory"]) == ("512m", "768m")
    assert "log4j2" in evaluating["spark.driver.extraJavaOptions"]
    differing = {key for key in {*plain, *evaluating} if plain.get(key) != evaluating.get(key)}
    assert differing == {"spark.jars", "spark.plugins", options, f"spark.{side}.memory"}


def test_jars_and_plugins_of_the_file_stay() -> None:
    own = SparkSettings(conf={"spark.jars": "/own.jar", "spark.plugins": "own.Plugin", "spark.driver.memory": "4g"})
    settings = settings_for(own, 2, Pod(), evaluates=True)
    assert settings["spark.jars"] == f"/own.jar,{JAR}"
    assert settings["spark.plugins"] == f"own.Plugin,{PLUGIN}"
    assert settings["spark.driver.memory"] == "4g"
    assert settings_for(own, 2, Pod())["spark.jars"] == "/own.jar"
