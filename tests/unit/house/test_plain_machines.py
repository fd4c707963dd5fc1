"""The files for machines without Kubernetes: units of systemd, and what Prometheus reads."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lockstep_cli.__main__ import main as lockstep
from lockstep_cli.options import CONSOLE_PORT
from lockstep_cli.processes.run import PORT
from tests.support.source_modules import REPOSITORY
from tests.support.watched import LABELS, RULES, named_in, undeclared

UNITS = REPOSITORY / "deploy" / "systemd"
RUN, CONSOLE = UNITS / "lockstep.service", UNITS / "lockstep-console.service"
SCRAPE = REPOSITORY / "deploy" / "prometheus" / "scrape.yaml"
RECORDING = RULES.with_name("lockstep.recording.yaml")
FILE = "/etc/lockstep/mm2.properties"
PROGRAMS = Path("/opt/lockstep/bin")
"""Where the guide installs Lockstep."""

PROMTOOL, ANALYZE = shutil.which("promtool"), shutil.which("systemd-analyze")
NEEDS_PROMTOOL = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not here: apt-get install --no-install-recommends prometheus"
)
NEEDS_ANALYZE = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not here: apt-get install systemd")
MOST_EXPOSED = 20
"""In tenths, by `systemd-analyze security`, where 100 is a service that may do everything."""


def directives(unit: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of each section of a unit, as (name, value)."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in unit.read_text().splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            sections[header[1]] = []
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, line
            list(sections.values())[-1].append((name, value))
    return sections


def service(unit: Path) -> dict[str, str]:
    """Return the service of a unit. No name is there twice."""
    lines = directives(unit)["Service"]
    assert len(dict(lines)) == len(lines)
    return dict(lines)


def command(unit: Path) -> tuple[str, list[str]]:
    """Return the name of the program that a unit starts, and its arguments."""
    program, *arguments = service(unit)["ExecStart"].split()
    assert Path(program).parent == PROGRAMS
    return Path(program).name, arguments


def parsed(program: click.Command, arguments: Iterable[str]) -> dict[str, Any]:
    """Return what a command takes of these arguments, all of them."""
    with program.make_context("program", list(arguments), resilient_parsing=True) as context:
        assert context.args == []
        return dict(context.params)


@pytest.mark.parametrize(("unit", "verb"), [(RUN, "run"), (CONSOLE, "console")])
def test_unit_starts_what_the_command_knows_for_the_file(unit: Path, verb: str) -> None:
    name, (asked, *arguments) = command(unit)
    assert (name, asked) == ("lockstep", verb)
    assert isinstance(lockstep, click.Group)
    program = lockstep.get_command(click.Context(lockstep), verb)
    assert program is not None
    assert str(parsed(program, arguments)["file"]) == FILE


def test_units_are_restarted_unless_the_file_cannot_be_used() -> None:
    for unit in (RUN, CONSOLE):
        assert dict(directives(unit)["Unit"])["StartLimitIntervalSec"] == "0"
        assert service(unit)["Restart"] == "on-failure"
        assert service(unit)["RestartPreventExitStatus"] == "2", "docs/reference/exit-codes.md"
        assert dict(directives(unit)["Install"]) == {"WantedBy": "multi-user.target"}


def test_slots_have_time_to_write_their_progress_before_the_kill() -> None:
    """The run gets the signal alone, and ends its services in order."""
    assert service(RUN)["KillMode"] == "mixed"
    assert service(RUN)["TimeoutStopSec"] == "30s"


def test_both_units_are_closed_in_the_same_way() -> None:
    own = {"ExecStart", "KillMode"}
    run, shown = ({k: v for k, v in service(unit).items() if k not in own} for unit in (RUN, CONSOLE))
    assert run == shown
    assert run["User"] == run["Group"] == "lockstep"
    closed = {"NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces"}
    assert {run[name] for name in closed} == {"yes"}
    assert (run["ProtectSystem"], run["CapabilityBoundingSet"], run["WorkingDirectory"]) == ("strict", "", "/tmp")


@NEEDS_ANALYZE
@pytest.mark.parametrize("unit", [RUN, CONSOLE], ids=lambda unit: unit.stem)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    """With a program and a user that are here."""
    assert ANALYZE is not None
    here = tmp_path / unit.name
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    here.write_text(re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE))
    ran = subprocess.run([ANALYZE, "verify", "--man=no", here], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


@NEEDS_ANALYZE
@pytest.mark.parametrize("unit", [RUN, CONSOLE], ids=lambda unit: unit.stem)
def test_unit_leaves_little_open(unit: Path) -> None:
    assert ANALYZE is not None
    checked: list[str | Path] = [
        ANALYZE,
        "security",
        "--offline=true",
        "--no-pager",
        f"--threshold={MOST_EXPOSED}",
        unit,
    ]
    ran = subprocess.run(checked, capture_output=True, text=True, check=False, timeout=60)
    if "unrecognized option" in ran.stderr:
        pytest.skip("this systemd-analyze judges no files: it is older than 250")
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr


def test_prometheus_scrapes_the_run_and_the_console() -> None:
    body = yaml.safe_load(SCRAPE.read_text())
    assert body.keys() == {"scrape_configs"}
    jobs = {job["job_name"]: job["static_configs"] for job in body["scrape_configs"]}
    assert jobs == {
        "lockstep": [{"targets": [f"127.0.0.1:{PORT}"]}],
        "lockstep-console": [{"targets": [f"127.0.0.1:{CONSOLE_PORT}"]}],
    }


def recorded() -> list[dict[str, str]]:
    groups = yaml.safe_load(RECORDING.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_recording_rules_use_declared_metrics_and_are_named_by_them() -> None:
    names = [rule["record"] for rule in recorded()]
    assert len(set(names)) == len(names) > 5
    for rule in recorded():
        assert rule.keys() == {"record", "expr"}
        assert undeclared(rule["expr"], LABELS) == []
        level, metric, operation = rule["record"].split(":")
        assert level == "flow"
        (selector,) = named_in(rule["expr"]).selectors
        assert metric == selector.metric.removesuffix("_total")
        assert operation in ("rate5m", *re.findall(r"^(max|sum)", rule["expr"]))
        assert rule["expr"].startswith(("max by (namespace, flow)", "sum by (namespace, flow)"))


@NEEDS_PROMTOOL
def test_prometheus_takes_the_files_of_the_guide(tmp_path: Path) -> None:
    """As the guide says, but with the jobs in the file itself: an older Prometheus has no `scrape_config_files`."""
    assert PROMTOOL is not None
    for file in (RULES, RECORDING):
        shutil.copy(file, tmp_path)
    main = tmp_path / "prometheus.yml"
    main.write_text(yaml.safe_dump({"rule_files": ["lockstep.*.yaml"], **yaml.safe_load(SCRAPE.read_text())}))
    ran = subprocess.run([PROMTOOL, "check", "config", main], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(recorded())} rules found" in ran.stdout + ran.stderr


def test_guide_names_the_files_and_the_places() -> None:
    guide = (REPOSITORY / "docs" / "guides" / "run.md").read_text()
    for file in (RUN, CONSOLE, SCRAPE, RULES, RECORDING):
        assert f"../../{file.relative_to(REPOSITORY)}" in guide
    assert FILE in guide
    assert f"`{PROGRAMS.parent}`" in guide
    assert service(RUN)["EnvironmentFile"].removeprefix("-") in guide
