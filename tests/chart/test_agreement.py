"""The chart and the services say the same of a file: `helm template`, and the Job before an installation for what no
schema can tell."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from lockstep_cli.__main__ import main
from lockstep_config.strimzi.api_versions import API_VERSIONS
from tests.chart.helm import CHART, NEEDS_PINNED_HELM, SEEDS, Objects, refused, rendered
from tests.chart.test_workloads import EVERYTHING, resource, v1

pytestmark = NEEDS_PINNED_HELM

GOOD = resource({"from": "A", "to": "B", **EVERYTHING})
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def mirror(**changed: Any) -> dict[str, Any]:
    spec = GOOD["spec"]
    return {**GOOD, "spec": {**spec, "mirrors": [{**spec["mirrors"][0], **changed}]}}


def source(**config: Any) -> dict[str, Any]:
    return mirror(sourceConnector={"config": {key.replace("__", "."): value for key, value in config.items()}})


def cluster(**changed: Any) -> dict[str, Any]:
    first, *others = GOOD["spec"]["clusters"]
    return {**GOOD, "spec": {**GOOD["spec"], "clusters": [{**first, **changed}, *others]}}


WRONG = {
    "no expression": mirror(topicsPattern="*"),
    "no expression behind another": mirror(groupsPattern="a.*, *"),
    "a list of patterns": mirror(topicsPattern=["a", "b"]),
    "patterns under a connector": mirror(sourceConnector={"topicsPattern": "a"}),
    "patterns of the resource": {**GOOD, "spec": {**GOOD["spec"], "topicsPattern": "a"}},
    "no boolean": source(sync__topic__acls__enabled="no"),
    "no number": source(offset__lag__max="many"),
    "too small a number": mirror(sourceConnector={"tasksMax": 0}),
    "no flag": mirror(sourceConnector={"pause": "no"}),
    "a list among settings": source(topics__exclude=["a"]),
    "an unknown field of a cluster": cluster(bootstrapServer="a:9092"),
    "an unknown way to log in": cluster(authentication={"type": "kerberos"}),
    "half a secret": cluster(tls={"trustedCertificates": [{"certificate": "ca.crt"}]}),
    "a number for a secret's name": cluster(
        tls={"trustedCertificates": [{"secretName": 4.0, "certificate": "ca.crt"}]}
    ),
    "a field of another version": {**GOOD, "apiVersion": "kafka.strimzi.io/v1"},
}
"""What a schema can tell."""
BEYOND = {
    "half an expression": mirror(topicsPattern="orders.("),
    "no servers": cluster(bootstrapServers="a"),
    "records that would be changed": source(transforms="mask"),
    "a wrong setting beside it": {**GOOD, "settings": {"replication.factor": "some"}},
}
WARNED = {
    "connectors that disagree": (source(replication__policy__class=IDENTITY), "counts for both here"),
    "a key that is near another": (source(replication__factr=1), "did you mean"),
}
"""What runs in MirrorMaker 2 as well."""
RIGHT = {
    "a number for a version": {**GOOD, "spec": {**GOOD["spec"], "version": 3.9}},
    "a whole number for a version": {**GOOD, "spec": {**GOOD["spec"], "version": 4.0}},
    "IBM's": {**GOOD, "apiVersion": "eventstreams.ibm.com/v1beta2"},
    "a flag in quotes": mirror(sourceConnector={"pause": "False"}),
    "a number in quotes": source(offset__lag__max=" 7 "),
    "a reference": source(sync__topic__acls__enabled="${env:WITH_ACLS}"),
    "a secret that is not there": cluster(tls={"trustedCertificates": [{"secretName": "ca", "certificate": "ca.crt"}]}),
    "transforms, a rename and a delay": source(
        lockstep__transform__pii__topics="customers",
        lockstep__transform__pii__mask="$.name: hash_salted",
        lockstep__transform__pii__salt="${env:PII_SALT}",
        lockstep__transform__eu__topics="orders-.*",
        lockstep__transform__eu__sql="SELECT * FROM records WHERE json_text(value, '$.country') = 'DE'",
        lockstep__rename=r"A\.orders-(.*) -> eu.$1 ; A\.(.*) -> $1",
        lockstep__delay="30m, audit=2h",
    ),
    "a number in a text": source(topics__exclude=1, offset__lag__max=7),
    "v1": v1(**EVERYTHING),
}


def check(file: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["config", "check", str(file), *more])


def written(folder: Path, values: dict[str, Any]) -> Path:
    """Write the resource alone, as a user has it: the services know nothing else."""
    file = folder / "mirror.yaml"
    file.write_text(yaml.safe_dump({key: value for key, value in values.items() if key not in ("settings", "flows")}))
    return file


def jobs_verdict(objects: Objects, folder: Path) -> Result:
    """Run what the Job's container runs, with its own arguments, on the files of its ConfigMap."""
    (job,) = objects.by_kind("Job").values()
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (mount,) = (named for named in container["volumeMounts"] if named["name"] == "config")
    (volume,) = (named for named in job["spec"]["template"]["spec"]["volumes"] if named["name"] == "config")
    for name, text in objects.by_kind("ConfigMap")[volume["configMap"]["name"]]["data"].items():
        (folder / name).write_text(text)
    return CliRunner().invoke(main, [arg.replace(mount["mountPath"], str(folder)) for arg in container["args"]])


@pytest.mark.parametrize("case", WRONG)
def test_helm_refuses_what_the_schema_refuses(case: str, tmp_path: Path) -> None:
    assert check(written(tmp_path, WRONG[case])).exit_code == 2
    assert "values don't meet the specifications of the schema" in refused(WRONG[case])


@pytest.mark.parametrize("case", BEYOND)
def test_the_rest_the_job_refuses_before_anything_is_made(case: str, tmp_path: Path) -> None:
    verdict = jobs_verdict(rendered(BEYOND[case]), tmp_path)
    assert verdict.exit_code == 2, verdict.output
    assert "cannot be used" in verdict.output


@pytest.mark.parametrize("case", WARNED)
def test_job_warns_of_what_runs_in_mirror_maker_too(case: str, tmp_path: Path) -> None:
    values, warning = WARNED[case]
    verdict = jobs_verdict(rendered(values), tmp_path)
    assert verdict.exit_code == 0, verdict.output
    assert warning in verdict.output


@pytest.mark.parametrize("case", RIGHT)
def test_chart_accepts_what_the_services_accept(case: str, tmp_path: Path) -> None:
    taken = check(written(tmp_path, RIGHT[case]), "--alone")
    assert taken.exit_code == 0, taken.output
    verdict = jobs_verdict(rendered(RIGHT[case]), tmp_path)
    assert verdict.exit_code == 0, verdict.output


@pytest.mark.parametrize("values", sorted(CHART.glob("ci/*-values.yaml")), ids=lambda file: file.stem)
def test_a_values_file_of_the_chart_can_be_checked_as_it_is(values: Path) -> None:
    taken = check(values, "--alone")
    assert taken.exit_code == 0, taken.output


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_job_accepts_every_seed_without_its_secrets(seed: Path, tmp_path: Path) -> None:
    verdict = jobs_verdict(rendered(seed), tmp_path)
    assert verdict.exit_code == 0, verdict.output


VERSIONS = sorted({*API_VERSIONS["KafkaMirrorMaker2"], "kafka.strimzi.io/v1beta1", "kafka.strimzi.io", "v1", ""})


@pytest.mark.parametrize("version", VERSIONS)
def test_chart_accepts_the_api_versions_of_the_services(version: str, tmp_path: Path) -> None:
    resource = {**(v1(**EVERYTHING) if version.endswith("/v1") else GOOD), "apiVersion": version}
    taken = check(written(tmp_path, resource))
    if version in API_VERSIONS["KafkaMirrorMaker2"]:
        assert taken.exit_code == 0, taken.output
        assert rendered(resource).workloads()
    else:
        assert taken.exit_code == 2
        assert "KafkaMirrorMaker2 has kafka.strimzi.io/v1alpha1, kafka.strimzi.io/v1beta2, kafka.str" in taken.output
        assert "KafkaMirrorMaker2 has kafka.strimzi.io/v1alpha1, kafka.strimzi.io/v1beta2, kafka.str" in refused(
            resource
        )


def test_numbers_that_are_texts_reach_the_services_as_texts() -> None:
    for given, passed in ((3.9, "3.9"), (4, "4.0"), ("4.10", "4.10")):
        config = rendered({**GOOD, "spec": {**GOOD["spec"], "version": given}}).config()["mirror.yaml"]
        assert yaml.safe_load(config)["spec"]["version"] == passed
    clusters = [{"alias": 1, "bootstrapServers": "a:1"}, {"alias": 20, "bootstrapServers": "b:1"}]
    numbered = {**GOOD["spec"], "connectCluster": 20, "clusters": clusters}
    numbered["mirrors"] = [{**GOOD["spec"]["mirrors"][0], "sourceCluster": 1, "targetCluster": 20}]
    objects = rendered({**GOOD, "spec": numbered})
    assert objects.workload("data-plane", "1->20")
    assert yaml.safe_load(objects.config()["mirror.yaml"])["spec"]["connectCluster"] == "20"


def test_the_job_comes_before_all_else_and_needs_nothing_of_the_release() -> None:
    objects = rendered(mirror(sourceConnector={"config": {"x": "${secrets:kafka/s:k}"}}), sets=("check.enabled=true",))
    (job,) = objects.by_kind("Job").values()
    names = [
        name
        for name, config_map in objects.by_kind("ConfigMap").items()
        if "helm.sh/hook" in config_map["metadata"].get("annotations", {})
    ]
    for manifest in (job, objects.by_kind("ConfigMap")[names[0]]):
        assert manifest["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    weights = [
        int(manifest["metadata"]["annotations"]["helm.sh/hook-weight"])
        for manifest in (objects.by_kind("ConfigMap")[names[0]], job)
    ]
    assert weights == sorted(weights)
    pod = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in pod
    assert [sorted(volume) for volume in pod["volumes"]] == [["emptyDir", "name"], ["configMap", "name"]]
    assert pod["volumes"][1]["configMap"]["name"] == names[0]
    assert not rendered(GOOD, sets=("check.enabled=false",)).by_kind("Job")


def test_convert_of_several_documents_prints_a_values_file(tmp_path: Path) -> None:
    stranger = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser", "metadata": {"name": "u"}, "spec": {}}
    given = {**source(offset__lag__max=5, producer__override__buffer__memory=2**60), "metadata": {"name": "one"}}
    given["spec"]["version"] = 3.9
    other = {**GOOD, "metadata": {"name": "other"}}
    file, values = tmp_path / "several.yaml", tmp_path / "values.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in (stranger, given, other)))
    assert 'kind is "KafkaUser"' in refused(file)
    printed = CliRunner().invoke(main, ["config", "convert", str(file), "--to", "resource", "--document", "one"])
    assert printed.exit_code == 0, printed.output
    values.write_text(printed.stdout)
    passed = yaml.safe_load(rendered(values).config()["mirror.yaml"])
    settings = passed["spec"]["mirrors"][0]["sourceConnector"]["config"]
    assert passed["metadata"]["name"] == "one"
    assert settings == {"offset.lag.max": 5, "producer.override.buffer.memory": str(2**60)}
    assert passed["spec"]["version"] == "3.9"
