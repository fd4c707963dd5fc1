"""What people type, and what they see at 80 columns, in a pipe and where nothing answers."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.text import Text

from lockstep_cli.processes.output import RunOutput
from lockstep_cli.rendering.console import console
from lockstep_cli.rendering.lines import wrap
from lockstep_cli.rendering.settings import settings_table
from lockstep_config.report.effective import Setting
from lockstep_kafka.admin.lowered_factor import warn_of_lowered
from lockstep_runtime.telemetry.log import JsonLines
from tests.support.command_line import lockstep
from tests.support.printed import printed

TWO = "clusters = A, B\nA.bootstrap.servers = {}\nB.bootstrap.servers = {}\nA->B.enabled = true\n"


def test_plan_with_a_format_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = lockstep("plan", "missing.properties", "-o", "json")
    assert answer.exit_code == 2
    assert list(tmp_path.iterdir()) == []
    assert "there is no such file" in answer.stderr


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("plan.json", "write --output json > plan.json"),
        ("a/plan.yml", "write --output yaml > a/plan.yml"),
        ("some/plan", "write --output json > some/plan"),
        ("xml", "is not one of 'text', 'json', 'yaml'"),
    ],
)
def test_file_in_place_of_a_form_names_what_writes_one(typed: str, said: str) -> None:
    answer = lockstep("plan", "missing.properties", "-o", typed)
    assert answer.exit_code == 2
    assert said in answer.stderr


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        (["statsu"], "status"),
        (["Status"], "status"),
        (["fail-over"], "failover"),
        (["config", "shwo"], "show"),
        (["offsets", "lst"], "list"),
    ],
)
def test_unknown_command_names_the_near_one(typed: list[str], near: str) -> None:
    answer = lockstep(*typed)
    assert answer.exit_code == 2
    assert f"No such command {typed[-1]!r}. Did you mean {near!r}?" in answer.stderr


def test_unknown_command_like_no_other_names_none() -> None:
    answer = lockstep("zzz")
    assert (answer.exit_code, "Did you mean" in answer.stderr) == (2, False)


def test_probe_of_silent_clusters_keeps_to_its_time(tmp_path: Path) -> None:
    """Nobody answers on any side of two flows, and all are asked at once."""
    timeout, start = 4.0, time.monotonic()
    lockstep("probe", tmp_path / "none")
    startup_s = time.monotonic() - start
    with socket.create_server(("127.0.0.1", 0)) as source, socket.create_server(("127.0.0.1", 0)) as target:
        file = tmp_path / "mm2.properties"
        text = TWO.format(*(f"127.0.0.1:{silent.getsockname()[1]}" for silent in (source, target)))
        file.write_text(f"{text}B->A.enabled = true\n")
        start = time.monotonic()
        command = [sys.executable, "-m", "lockstep_cli", "probe", str(file), "--timeout", str(timeout), "-o", "json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        took = time.monotonic() - start - startup_s
    assert ended.returncode == 3, ended.stderr
    printed = json.loads(ended.stdout)
    checks = [check for category in printed["categories"] for check in category["checks"]]
    failed = [(check["code"], check["subject"]) for check in checks if check["result"] == "failed"]
    assert (printed["success"], failed) == (False, [("LD501", "A"), ("LD501", "B")])
    assert took < 2 * timeout, "each flow alone would be 8 s"


LONG_KEY = "A->B.target.consumer.socket.connection.setup.timeout.max.ms"
ADDRESSES = "broker-1.kafka.example.org:9092,broker-2.kafka.example.org:9092,broker-3.kafka.example.org:9092"


def shown_at(width: int, *settings: Setting) -> list[str]:
    return printed([settings_table(Path("f"), "title", settings)], width).splitlines()


def test_keys_and_addresses_are_whole_at_80_columns() -> None:
    settings = [
        Setting(LONG_KEY, "10000", Path("f"), 5, LONG_KEY),
        Setting("A.bootstrap.servers", ADDRESSES, Path("f"), 2, "A.bootstrap.servers"),
    ]
    lines = shown_at(80, *settings)
    assert LONG_KEY in lines
    for address in ADDRESSES.split(","):
        assert any(address in line for line in lines), address
    assert max(map(len, lines)) <= 80
    assert [line for line in shown_at(300, *settings) if LONG_KEY in line and "10000" in line], "in columns, with room"


def test_value_is_broken_behind_commas_and_blanks_alone() -> None:
    def lines(text: str, width: int) -> list[str]:
        return [line.plain for line in wrap(Text(text), width)]

    assert lines("aaa,bbb ccc", 5) == ["aaa,", "bbb", "ccc"]
    assert lines("1,234 records", 8) == ["1,234", "records"]
    assert lines("x" * 90, 20) == ["x" * 90]
    assert lines("", 20) == [""]


def test_table_in_a_pipe_has_no_trailing_blanks_and_whole_words(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    table = Table(box=None)
    for name in ("topic", "why"):
        table.add_column(name)
    table.add_row("t" * 200, "word " * 60)
    table.add_row("short", "x")
    console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert [line for line in lines if line != line.rstrip()] == []
    assert "t" * 200 in lines[1]


def lowered_on(alias: str, caplog: pytest.LogCaptureFixture) -> str:
    """The line that a service writes about a cluster with too few brokers."""
    warn_of_lowered(alias, 3, brokers=1)
    return JsonLines("topic-sync").format(caplog.records[-1])


def test_warning_about_a_cluster_is_shown_once_for_all_processes(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    output = RunOutput(level="info", json_lines=False, flow_width=4)
    line = lowered_on("B-few", caplog)
    for process in ("data-plane", "topic-sync", "data-plane"):
        output.add_line(process, line)
        output.add_line(process, json.dumps({**json.loads(line), "message": "another", "once": ""}))
    shown = capsys.readouterr().out
    assert (shown.count("replication factor lowered"), shown.count("another")) == (1, 3)
    output.add_line("data-plane", lowered_on("A-few", caplog))
    assert "replication factor lowered" in capsys.readouterr().out, "another cluster"
