"""What runs on GitHub: the same commands as in a checkout, with actions that nobody can change."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[3] / ".github" / "workflows"
TEXTS = {file.name: file.read_text() for file in FOLDER.iterdir()}


def jobs() -> dict[str, dict[str, Any]]:
    return {name: job for text in TEXTS.values() for name, job in yaml.safe_load(text)["jobs"].items()}


def commands(job: str) -> list[str]:
    return [step["run"] for step in jobs()[job]["steps"] if "run" in step]


def test_actions_are_pinned_by_commit_with_their_version() -> None:
    used = [line.strip() for text in TEXTS.values() for line in text.splitlines() if "uses:" in line]
    assert used
    assert [use for use in used if not re.fullmatch(r"- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_every_push_and_pull_request_runs_what_a_checkout_runs() -> None:
    (text,) = TEXTS.values()
    assert yaml.safe_load(text)[True].keys() == {"push", "pull_request"}  # YAML 1.1 reads `on` as true
    assert commands("check") == [".ci/run"]
    assert "if" not in jobs()["check"]


def test_tag_is_released_after_the_check_and_as_a_draft() -> None:
    release = jobs()["release"]
    assert (release["needs"], release["if"]) == ("check", "startsWith(github.ref, 'refs/tags/v')")
    checking, making, publishing = commands("release")
    assert checking == "[[ $GITHUB_REF_NAME =~ ^v[0-9.]+$ ]]", "before make, which would expand what is in it"
    assert making.startswith('make release TAG="$GITHUB_REF_NAME"')
    assert "--draft" in publishing
    assert "--verify-tag" in publishing


def test_images_and_chart_are_pushed_after_the_draft() -> None:
    publish = jobs()["publish"]
    assert (publish["needs"], publish["if"]) == ("release", "startsWith(github.ref, 'refs/tags/v')")
    checking, making, login, images, chart = commands("publish")
    assert checking == commands("release")[0]
    assert making.startswith(
        'make release TAG="$GITHUB_REF_NAME" REPOSITORY_AT="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"'
    )
    assert all("--password-stdin" in line for line in login.splitlines()), "a token in arguments is seen by others"
    assert images == 'make images TAG="${GITHUB_REF_NAME#v}" PUSH=1'
    assert chart == "make push-chart"


def test_each_job_may_write_only_what_it_publishes() -> None:
    (text,) = TEXTS.values()
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in jobs().items() if "permissions" in job} == {
        "release": {"contents": "write"},
        "publish": {"contents": "read", "packages": "write"},
    }
    assert set(re.findall(r"secrets\.\w+|github\.token", text)) == {"github.token"}


@pytest.mark.parametrize(("tag", "code"), [("v0.1.0", 0), ("v0.1.0$(id)", 1), ("v", 1), ("v0.1.0 TAG=x", 1)])
def test_tag_with_anything_but_digits_and_dots_ends_the_job(tag: str, code: int) -> None:
    for job in ("release", "publish"):
        ran = subprocess.run(["bash", "-c", commands(job)[0]], env={"GITHUB_REF_NAME": tag}, check=False)
        assert ran.returncode == code, (job, tag)


@pytest.mark.parametrize("job", jobs())
def test_each_command_is_a_program_of_bash_and_names_targets_that_are_there(job: str) -> None:
    makefile = (FOLDER.parents[1] / "Makefile").read_text()
    for command in commands(job):
        read = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")
        for target in re.findall(r"^make (\S+)", command, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
