"""`lockstep config check|show|convert`: exit codes, what goes where, and no secret anywhere."""

import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from lockstep_config import load
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from tests.support.command_line import lockstep

SECRET = "hunter2-hunter2"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TEXT = f"""\
clusters = A, B
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
B.security.protocol = SASL_PLAINTEXT
B.sasl.mechanism = PLAIN
B.sasl.jaas.config = {LOGIN} username="me" password="${{env:PASSWORD}}";
A->B.enabled = true
A->B.topics = orders\\\\..*, ünï
topics = not.these
A.consumer.fetch.min.bytes = 5
consumer.fetch.min.bytes = 6
"""

POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
RESOURCE = f"""\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  target:
    alias: B
    bootstrapServers: b:9092
    groupId: g
    configStorageTopic: configs
    offsetStorageTopic: offsets
    statusStorageTopic: status
  mirrors:
  - source: {{alias: A, bootstrapServers: "a:9092"}}
    sourceConnector:
      config:
        replication.policy.class: {POLICY}
    checkpointConnector:
      config:
        replication.policy.class: {POLICY}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(*arguments: str | Path, password: str = SECRET) -> Result:
    result = lockstep("config", *arguments, env={"PASSWORD": password})
    assert SECRET not in result.output
    return result


def line_of(key: str, result: Result) -> list[str]:
    """Value and origin of a key, as the table has them."""
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in result.stdout.splitlines()]
    return next((cells[1:] for cells in rows if cells and cells[0] == key), [])


class TestCheck:
    def test_config_check_of_a_usable_file_exits_0_and_names_unused_keys(self, file: Path) -> None:
        result = run("check", file)
        assert result.exit_code == 0
        assert f"{file}:13: consumer.fetch.min.bytes: has no effect: MirrorMaker drops it" in result.stdout
        assert result.stdout.endswith(f"{file} can be used: A->B enabled\n")

    def test_every_mistake_has_its_line_on_standard_error(self, file: Path) -> None:
        file.write_text(TEXT + "tasks.max = 0\ntopcs = x\n", encoding="utf-8")
        result = run("check", file)
        assert result.exit_code == 2
        assert f"{file}:13: consumer.fetch.min.bytes: has no effect: " in result.stdout, "warnings too"
        assert ":14:" not in result.stdout
        assert f"{file}:14: tasks.max: " in result.stderr
        assert f"{file}:15: topcs: " in result.stderr
        assert "2 mistakes\nWith --unknown warn, 1 of 2 lines would be a warning" in result.stderr

    def test_config_check_as_json(self, file: Path) -> None:
        body = json.loads(run("check", file, "--output", "json").stdout)
        assert (body["usable"], body["flows"], body["mistakes"]) == (True, ["A->B"], [])
        assert [(problem["line"], problem["key"]) for problem in body["without_effect"]] == [
            (13, "consumer.fetch.min.bytes")
        ]
        file.write_text("clusters = A\n", encoding="utf-8")
        result = run("check", file, "--output", "json")
        body = json.loads(result.stdout)
        assert (result.exit_code, body["usable"]) == (2, False)
        assert body["mistakes"][0]["file"] == str(file)

    def test_a_file_alone_needs_nothing_that_it_refers_to(self, file: Path) -> None:
        with_flow, alone = (
            lockstep("config", "check", file, *more, env={"PASSWORD": None}) for more in ([], ["--alone"])
        )
        assert (with_flow.exit_code, alone.exit_code) == (2, 0)
        assert f"{file}:8: B.sasl.jaas.config: is not checked: it names what is elsewhere\n" in alone.stdout
        assert alone.stdout.endswith(f"{file} can be used as far as it shows alone: A->B enabled\n")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        result = run("check", tmp_path / "no.properties")
        assert result.exit_code == 2
        assert "there is no such file" in result.stderr


class TestShow:
    def test_each_value_has_the_line_that_counts(self, file: Path) -> None:
        body = json.loads(run("show", file, "A->B", "--output", "json").stdout)
        (flow,) = body["flows"]
        by_key = {setting["key"]: setting for setting in flow["settings"]}
        assert by_key["topics"]["value"] == r"orders\..*, ünï"
        assert by_key["topics"]["origin"] == {"file": str(file), "line": 10, "key": "A->B.topics"}
        assert by_key["tasks.max"]["origin"] is None
        assert (by_key["offset.lag.max"]["value"], by_key["offset.lag.max"]["origin"]) == ("100", None)
        assert by_key["group.id"]["value"] == "A-mm2"
        consumer = {setting["key"]: setting for setting in flow["clients"]["source consumer"]}
        assert consumer["fetch.min.bytes"]["origin"]["key"] == "A.consumer.fetch.min.bytes"

    def test_the_replication_policy_that_counts_is_shown(self, file: Path) -> None:
        assert line_of("replication.policy.class", run("show", file, "--all")) == [
            "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "default",
        ]
        file.write_text(f"{TEXT}replication.policy.class = {POLICY}\n", encoding="utf-8")
        assert line_of("replication.policy.class", run("show", file)) == [
            POLICY,
            "line 14, replication.policy.class",
        ]

    def test_config_show_hides_a_java_class_replaced_by_a_python_class(self, file: Path) -> None:
        file.write_text(f"{TEXT}lockstep.topic.filter.class = tests.unit.config.own_rules:Regional\n", encoding="utf-8")
        whole = run("show", file, "--all")
        assert line_of("lockstep.topic.filter.class", whole)
        assert not line_of("topic.filter.class", whole)

    def test_config_show_names_the_first_connector_of_a_common_setting(self, tmp_path: Path) -> None:
        file = tmp_path / "mirror.yaml"
        file.write_text(RESOURCE, encoding="utf-8")
        key = "spec.mirrors[0].sourceConnector.config.replication.policy.class"
        assert line_of("replication.policy.class", run("show", file)) == [POLICY, f"line 16, {key}"]
        assert f"A->B.replication.policy.class = {POLICY}" in run("convert", file).stdout

    def test_config_show_masks_a_secret_from_any_file(self, file: Path) -> None:
        result = run("show", file, "--output", "json")
        settings = json.loads(result.stdout)["clusters"]["B"]
        (jaas,) = [setting for setting in settings if setting["key"] == "sasl.jaas.config"]
        assert jaas["value"] == "********"

    def test_config_show_has_the_reference_of_a_provider(self, file: Path) -> None:
        file.write_text(TEXT + "A.client.dns.lookup = x\n".replace("x", "${env:PASSWORD}"), encoding="utf-8")
        file.write_text(TEXT + "A->B.tasks.max = ${env:TASKS}\n", encoding="utf-8")
        result = lockstep("config", "show", file, env={"PASSWORD": SECRET, "TASKS": "7"})
        assert "${env:TASKS}" in result.output

    def test_config_show_table_has_defaults_only_with_all(self, file: Path) -> None:
        short, whole = run("show", file), run("show", file, "--all")
        assert "offset.lag.max" not in short.stdout
        assert "offset.lag.max" in whole.stdout
        assert "line 10, A->B.topics" in short.stdout

    def test_a_flow_that_is_not_there_is_named_with_those_that_are(self, file: Path) -> None:
        result = run("show", file, "A->C")
        assert result.exit_code == 2
        assert "A->B" in result.stderr


class TestConvert:
    def test_config_convert_writes_a_new_file_only(self, file: Path, tmp_path: Path) -> None:
        to = tmp_path / "new.properties"
        assert run("convert", file, "--to", to).exit_code == 0
        assert "${env:PASSWORD}" in to.read_text(encoding="ascii")
        again = run("convert", file, "--to", to)
        assert (again.exit_code, again.stderr) == (2, f"{to} is there already: remove it, or name another\n")

    def test_a_secret_that_is_written_out_stops_it(self, file: Path, tmp_path: Path) -> None:
        file.write_text(TEXT.replace("${env:PASSWORD}", SECRET), encoding="utf-8")
        result = run("convert", file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{file}:8: B.sasl.jaas.config: holds a secret that is written out" in result.stderr
        to = tmp_path / "new.properties"
        assert run("convert", file, "--to", to, "--with-secrets").exit_code == 0
        assert stat.S_IMODE(to.stat().st_mode) == 0o600
        assert SECRET in to.read_text(encoding="ascii")

    def test_config_convert_writes_an_unresolved_reference(self, file: Path) -> None:
        result = lockstep("config", "convert", file, env={})
        assert result.exit_code == 0
        assert "${env:PASSWORD}" in result.stdout
        assert "the environment variable PASSWORD is not set" in result.stderr

    def test_config_convert_of_a_mistake_writes_and_exits_2(self, file: Path, tmp_path: Path) -> None:
        file.write_text(TEXT + "A->B.tasks.max = none\n", encoding="utf-8")
        result = lockstep("config", "convert", file, env={})
        assert result.exit_code == 2
        assert "A->B.tasks.max = none" in result.stdout
        assert f"{file}:14: A->B.tasks.max: is 'none', which is no whole number" in result.stderr

    def test_config_convert_of_a_missing_certificate_exits_0(self, file: Path) -> None:
        lines = "A.security.protocol = SSL\nA.ssl.truststore.location = /nowhere/ca.p12\n"
        file.write_text(TEXT + lines, encoding="utf-8")
        result = run("convert", file)
        assert result.exit_code == 0
        assert "names /nowhere/ca.p12, which is no file that can be read" in result.stderr

    def test_the_one_resource_of_several_documents(self, tmp_path: Path) -> None:
        mirrors = tmp_path / "mirrors.yaml"
        mirrors.write_text(
            f"kind: Secret\n---\n{RESOURCE}---\n{RESOURCE.replace('mirror}', 'other}')}", encoding="utf-8"
        )
        undecided = run("convert", mirrors, "--to", "resource")
        assert (undecided.exit_code, undecided.stdout) == (2, "")
        assert "KafkaMirrorMaker2 mirror in line 3 and KafkaMirrorMaker2 other in line" in undecided.stderr
        chosen = run("convert", mirrors, "--to", "resource", "--document", "other")
        assert chosen.exit_code == 0
        (only,) = yaml.safe_load_all(chosen.stdout)
        assert only == {**yaml.safe_load(RESOURCE), "metadata": {"name": "other"}}
        assert "A->B.replication.policy.class" in run("convert", mirrors, "--document", "other").stdout

    def test_config_convert_to_resource_without_a_resource_is_refused(self, file: Path) -> None:
        result = run("convert", file, "--to", "resource")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "holds no KafkaMirrorMaker2 and no KafkaMirrorMaker, so there is no resource to print" in result.stderr

    def test_config_convert_of_an_unreadable_file_writes_nothing(self, file: Path) -> None:
        file.write_text("a = \\u12\n", encoding="utf-8")
        result = run("convert", file)
        assert (result.exit_code, result.stdout) == (2, "")


class TestMirrorMaker1sFiles:
    """Two files in the place of FILE."""

    @pytest.fixture
    def options(self, tmp_path: Path) -> list[str]:
        for side, lines in (
            ("consumer", "bootstrap.servers=a:1\ngroup.id=mm1\n"),
            ("producer", "bootstrap.servers=b:1\n"),
        ):
            (tmp_path / f"{side}.properties").write_text(lines)
        files = [f"--{side}.config={tmp_path / side}.properties" for side in ("consumer", "producer")]
        return [*files, "--include", "orders.*,payments"]

    def test_stand_in_the_place_of_the_file(self, options: list[str]) -> None:
        assert run("check", *options).exit_code == 0
        (flow,) = json.loads(run("show", *options, "--output", "json").stdout)["flows"]
        values = {setting["key"]: setting["value"] for setting in flow["settings"]}
        assert "source->target" in run("show", *options).stdout
        assert values["topics"] == "orders.*, payments"
        assert values["lockstep.legacy.group"] == "mm1"
        assert values["emit.heartbeats.enabled"] == "false", "a legacy flow's own default"

    def test_config_convert_of_mm1_files_has_the_same_meaning(self, options: list[str], tmp_path: Path) -> None:
        path = tmp_path / "mm2.properties"
        assert run("convert", *options, "--to", path).exit_code == 0
        assert run("check", path).exit_code == 0
        files = LegacyFiles(
            tmp_path / "consumer.properties", tmp_path / "producer.properties", {"include": "orders.*,payments"}
        )
        assert load(path, {}).flows == load_legacy(files, {}).flows

    @pytest.mark.parametrize("both", [True, False])
    def test_config_commands_need_either_a_file_or_mm1_options(
        self, options: list[str], file: Path, both: bool
    ) -> None:
        result = run("check", file, *options) if both else run("check")
        assert result.exit_code == 2
        assert "Name FILE, or in its place the options of lockstep legacy" in result.stderr
