"""The alert rules under promtool: each fires when it should, is quiet when it should, and does not flap at a restart;
every query of the dashboard is PromQL."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.watched import RULES, alerts, dashboard, expressions, filled_in

TESTS = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not here: apt-get install --no-install-recommends prometheus"
)


def promtool(*arguments: str | Path) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_rules_are_rules() -> None:
    promtool("check", "rules", RULES)


@needs_promtool
@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_alerts_fire_and_are_quiet(file: Path) -> None:
    promtool("test", "rules", file)


@needs_promtool
def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": filled_in(expression)}
        for number, (_, expression) in enumerate(expressions(dashboard()))
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", file)


def test_each_alert_is_seen_to_fire_and_to_be_quiet() -> None:
    fires: set[str] = set()
    quiet: set[str] = set()
    names = [alert.name for alert in alerts()]
    for file in TESTS:
        for test in yaml.safe_load(file.read_text())["tests"]:
            for check in test["promql_expr_test"]:
                named = re.search(r'alertname=(~?)"([^"]+)"', check["expr"])
                assert named, check["expr"]
                meant = {name for name in names if re.fullmatch(named[2], name)}
                assert meant, f"{named[2]} is no alert"
                (fires if check["exp_samples"] else quiet).update(meant)
    assert fires == quiet == set(names)
