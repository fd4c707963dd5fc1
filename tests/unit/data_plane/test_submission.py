"""A driver that was submitted, by the Apache Spark operator or whoever does as it does."""

from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.conf import (
    ADDRESS,
    PROPERTIES,
    InvalidSubmission,
    Pod,
    Submission,
    join_conf,
    settings_for,
    submitted_to,
)
from lockstep_data_plane.spark.process_session import start_spark

WRITTEN = """\
#Java properties built from Kubernetes config map with name: mirror-0-spark-drv-conf-map
spark.master=k8s\\://https\\://$KUBERNETES_SERVICE_HOST\\:$KUBERNETES_SERVICE_PORT
spark.app.id=mirror-0
spark.driver.host=mirror-0-driver-svc.kafka.svc
spark.driver.memory=700m
spark.executor.cores=2
spark.executor.instances=1
spark.authenticate=true
spark.kubernetes.container.image=registry\\:5000/lockstep-data-plane\\:1
spark.kubernetes.driver.pod.name=mirror-0-driver
spark.kubernetes.driver.podTemplateFile=/tmp/on-the-operators-machine.json
spark.kubernetes.executor.label.spark.operator/spark-app-name=mirror
spark.kubernetes.executor.podTemplateFile=/opt/spark/pod-template/pod-spec-template.yml
spark.kubernetes.resource.type=python
spark.kubernetes.submitInDriver=true
spark.submit.pyFiles=local\\:///opt/lockstep/bin/lockstep-data-plane
"""


def submission(address: str = "10.1.2.3", **conf: str) -> Submission:
    return Submission(Path("spark.properties"), {key.replace("_", "."): value for key, value in conf.items()}, address)


@pytest.fixture
def written(tmp_path: Path) -> Submission:
    """What operator 0.8.0 writes, in short."""
    file = tmp_path / "spark.properties"
    file.write_text(WRITTEN)
    submission = submitted_to({PROPERTIES: str(file), ADDRESS: "10.1.2.3"})
    assert submission is not None
    return submission


def test_driver_that_is_not_submitted_has_no_submission() -> None:
    assert submitted_to({}) is None
    assert submitted_to({PROPERTIES: "", ADDRESS: "10.1.2.3"}) is None


def test_the_submitters_settings_are_sparks(written: Submission) -> None:
    conf = settings_for(join_conf(SparkSettings(), written), 2, Pod("a-host-name", "kafka"))
    assert conf["spark.app.id"] == "mirror-0", "by which the executors are looked for"
    assert conf["spark.kubernetes.executor.label.spark.operator/spark-app-name"] == "mirror"
    assert conf["spark.kubernetes.driver.pod.name"] == "mirror-0-driver"
    assert conf["spark.kubernetes.container.image"] == "registry:5000/lockstep-data-plane:1"
    assert conf["spark.driver.memory"] == "700m"
    assert conf["spark.authenticate"] == "true"
    assert conf["spark.executor.instances"] == "1"
    assert conf["spark.task.maxFailures"] == "1", "as ever"


def test_submitted_keys_of_the_submission_only_are_dropped(written: Submission) -> None:
    conf = settings_for(join_conf(SparkSettings(), written), 2, Pod())
    assert conf["spark.master"] == "k8s://https://kubernetes.default.svc"
    gone = ("spark.submit.pyFiles", "spark.kubernetes.submitInDriver", "spark.kubernetes.driver.podTemplateFile")
    assert not set(gone) & set(conf)
    assert conf["spark.kubernetes.executor.podTemplateFile"] == "/opt/spark/pod-template/pod-spec-template.yml"


def test_submitted_driver_address_is_that_of_the_pod(written: Submission) -> None:
    conf = settings_for(join_conf(SparkSettings(), written), 2, Pod())
    assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == "10.1.2.3"
    assert conf["spark.kubernetes.executor.useDriverPodIP"] == "true"
    without = settings_for(join_conf(SparkSettings(), submission(address="")), 2, Pod())
    assert without["spark.driver.bindAddress"] == "0.0.0.0", "and then by the driver's name"
    assert without["spark.kubernetes.executor.useDriverPodIP"] == "false"


def test_the_file_may_say_more_and_the_same_but_nothing_else() -> None:
    given = submission(spark_executor_memory="1g")
    file = SparkSettings(conf={"spark.executor.memory": "1g", "spark.network.timeout": "60s"})
    assert join_conf(file, given).conf["spark.network.timeout"] == "60s"
    with pytest.raises(InvalidSubmission, match=r"lockstep\.spark\.conf\.spark\.executor\.memory .*in one place only"):
        join_conf(SparkSettings(conf={"spark.executor.memory": "2g"}), given)


def test_submitted_secret_that_conflicts_is_not_shown() -> None:
    file = SparkSettings(conf={"spark.authenticate.secret": "a1"})
    with pytest.raises(InvalidSubmission) as raised:
        join_conf(file, submission(spark_authenticate_secret="b2"))
    assert "a1" not in str(raised.value)
    assert "b2" not in str(raised.value)


def test_submitted_pinned_key_is_refused() -> None:
    with pytest.raises(InvalidSubmission, match=r"^spark\.dynamicAllocation\.enabled, .* is always false"):
        join_conf(SparkSettings(), submission(spark_dynamicAllocation_enabled="true"))
    with pytest.raises(InvalidSubmission, match=r"^spark\.executor\.cores, "):
        join_conf(SparkSettings(), submission(spark_executor_cores="many"))
    join_conf(SparkSettings(), submission(spark_dynamicAllocation_enabled="false"))


def test_a_submitted_driver_runs_nowhere_but_on_kubernetes() -> None:
    assert join_conf(SparkSettings(master="k8s://https://api"), submission()).master == "k8s://https://api"
    with pytest.raises(InvalidSubmission, match=r"lockstep\.spark\.master is local\[2\], .*leave the key out"):
        join_conf(SparkSettings(master="local[2]"), submission())


def test_a_file_that_is_not_there_or_no_properties_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmission, match=r"missing\.properties, .*No such file"):
        submitted_to({PROPERTIES: str(tmp_path / "missing.properties")})
    (tmp_path / "broken.properties").write_text("spark.app.id=\\u12\n")
    with pytest.raises(InvalidSubmission, match=r"broken\.properties:1"):
        submitted_to({PROPERTIES: str(tmp_path / "broken.properties")})


def test_service_with_an_invalid_submission_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text("clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n")
    file = tmp_path / "spark.properties"
    file.write_text("spark.speculation=true\n")
    monkeypatch.setenv(PROPERTIES, str(file))
    with pytest.raises(SystemExit) as ended:
        start_spark(load(config, {}).flows)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("spark.speculation, with which this driver was submitted, ")
