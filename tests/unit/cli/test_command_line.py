"""The `lockstep` command as it is met: help, version, names."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lockstep_cli.processes.run import held_instance_name
from lockstep_config.loader.mm1_files import LegacyFiles
from lockstep_runtime.service.mm1_options import legacy_arguments, legacy_options, mm1_files
from tests.support.command_line import lockstep
from tests.unit.cli.test_helps import commands
from tests.unit.golden.programs import installed


def test_help_shows_the_smallest_file_and_the_command() -> None:
    answer = lockstep("--help")
    assert answer.exit_code == 0
    assert "A->B.enabled = true" in answer.output
    assert "lockstep run mm2.properties" in answer.output


def test_version_option_prints_the_release() -> None:
    assert lockstep("--version").output == f"lockstep {version('lockstep-kafka-cli')}\n"


@pytest.mark.parametrize("module", ["lockstep_cli.processes.run", "lockstep_cli.__main__"])
def test_run_and_help_import_no_spark_faust_or_kafka_client(module: str) -> None:
    heavy = "pyspark faust mode aiokafka confluent_kafka kio aiohttp psutil rich"
    code = f"import sys, {module}; print([m for m in {heavy.split()!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "module",
    [
        "lockstep_cli.commands.doctor",
        "lockstep_cli.commands.migrate_commands",
        "lockstep_cli.commands.probe",
        "lockstep_cli.commands.rack",
        "lockstep_cli.commands.status",
        "lockstep_cli.commands.version",
        "lockstep_cli.commands.watch",
        "lockstep_ops.command_client",
        "lockstep_ops.takeover.takeover_io",
    ],
)
def test_no_command_imports_spark_or_faust(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('pyspark', 'faust', 'mode') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_instance_names_differ_between_runs_and_are_reused_afterwards(tmp_path: Path) -> None:
    with held_instance_name(tmp_path) as first:
        with held_instance_name(tmp_path) as second:
            assert first != second
        assert first.endswith("-1")
        assert second.endswith("-2")
    with held_instance_name(tmp_path) as again:
        assert again == first


def test_secrets_dir_reaches_the_file_and_is_forgotten_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCKSTEP_SECRETS_DIR", raising=False)
    seed = Path(__file__).parents[2] / "seeds" / "strimzi-0.17-tls.yaml"
    for arguments in (["run", str(seed)], ["status", str(seed)], ["pause", str(seed)]):
        answer = lockstep(*arguments, "--secrets-dir", tmp_path)
        assert answer.exit_code == 2, arguments
        assert f"{tmp_path}/my-user-source is no folder" in answer.output
        assert "LOCKSTEP_SECRETS_DIR" not in os.environ
    monkeypatch.setenv("LOCKSTEP_SECRETS_DIR", "/elsewhere")
    answer = lockstep("run", seed)
    assert "/elsewhere/my-user-source is no folder" in answer.output


FILES = ["--consumer.config=c.properties", "--producer.config", "p.properties"]


def test_legacy_help_names_the_replaced_command_and_the_exit_codes() -> None:
    answer = lockstep("legacy", "--help")
    assert answer.exit_code == 0
    for words in ("kafka-mirror-maker.sh", "--include", "--abort.on.send.failure", "3    the target refused a record"):
        assert words in answer.output
    assert "--message.handler" not in answer.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing options '--consumer.config' and '--producer.config'"),
        (FILES[:1], "Missing option '--producer.config'"),
        (FILES[1:], "Missing option '--consumer.config'"),
        (["--num.streams", "2"], "Missing option '--consumer.config'"),
        (FILES, "c.properties: there is no such file"),
        ([*FILES, "--new.consumer", "--message.handler=x"], "c.properties: there is no such file"),
        ([*FILES, "--blacklist=x"], "No such option: --blacklist"),
    ],
)
def test_legacy_refuses_unusable_arguments(arguments: list[str], words: str) -> None:
    answer = lockstep("legacy", *arguments)
    assert answer.exit_code == 2
    assert words in answer.stderr


def test_legacys_options_reach_its_services_as_they_were_given() -> None:
    received: list[LegacyFiles | None] = []

    @click.command()
    @legacy_options(hidden=True)
    def service(**parameters: object) -> None:
        received.append(mm1_files(parameters))

    files = LegacyFiles(Path("/c"), Path("/p"), {"num.streams": "2", "include": "a.*,b", "name": "x"})
    assert CliRunner().invoke(service, legacy_arguments(files)).exit_code == 0
    assert CliRunner().invoke(service, []).exit_code == 0
    assert received == [files, None]


WITHOUT_FILE = {"lockstep version"}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=path)
        for name, program in installed().items()
        for path, command in commands(program, name)
        if path not in WITHOUT_FILE
    ],
)
def test_command_without_its_file_is_bad_usage(command: click.Command) -> None:
    """An option whose name is not that of its parameter fails with TypeError, whatever the command line says."""
    arguments = ["--config", "/no/such/file"] if any("--config" in param.opts for param in command.params) else []
    for param in command.params:
        if param.required and "--config" not in param.opts:
            arguments += [*([param.opts[0]] if isinstance(param, click.Option) else []), "/no/such/file"]
    answer = CliRunner().invoke(command, arguments)
    assert answer.exit_code == 2, answer.exception
