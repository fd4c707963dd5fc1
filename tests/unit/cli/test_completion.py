"""`lockstep completion`: each shell that is here completes with the script it prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep_cli.completion import last_word
from lockstep_cli.completion_names import scope_names
from tests.support.command_line import lockstep
from tests.support.reports import at_work, progress, topic
from tests.unit.golden.sources import FILE

BASH = """
source {script}
complete -p lockstep
COMP_LINE="{line}" COMP_POINT=${{#COMP_LINE}}
compopt() {{ echo "compopt $1 $2"; }}
_lockstep_completion lockstep
if [[ ${{#COMPREPLY[@]}} != 0 ]]; then printf '%s\\n' "${{COMPREPLY[@]}}"; fi
"""
ZSH = """
compdef() {{ print "compdef $@" }}
_describe() {{ eval "print -l -- \\${{(@)$3}}" }}
compadd() {{ print -l -- $@ }}
compstate=()
source {script}
words=({words}) CURRENT={number}
_lockstep_completion
"""
FISH = """
source {script}
complete --do-complete '{line}'
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With `lockstep` on the PATH: this checkout's, by its own name."""
    program = tmp_path / "bin" / "lockstep"
    program.parent.mkdir()
    code = "from lockstep_cli.__main__ import main; main(prog_name='lockstep')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def complete(shell: str, line: str, environment: dict[str, str], folder: Path) -> list[str]:
    """What the shell says that the last word of the line may become."""
    place = shutil.which(shell)
    if place is None:
        pytest.skip(f"there is no {shell} here")
    script = folder / "script"
    with script.open("wb") as out:
        subprocess.run(["lockstep", "completion", shell], stdout=out, env=environment, check=True)
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    template = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]
    program = template.format(script=script, words=quoted, number=len(words), line=line)
    done = subprocess.run([place, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_with_the_script_completes_a_command(shell: str, environment: dict[str, str], tmp_path: Path) -> None:
    lines = complete(shell, "lockstep st", environment, tmp_path)
    commands = {line.partition("\t")[0].partition(":")[0] for line in lines}
    assert {"status", "stop"} <= commands
    assert "pause" not in commands


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lockstep offsets re", ["reset"]),
        ("lockstep doctor --ban", ["--bandwidth"]),
        ("lockstep status mm2.properties --output j", ["json"]),
        ("lockstep completion z", ["zsh"]),
        ("lockstep status {file} --output=j", ["json"]),
        ("lockstep status {file} --flow ", ["'A->B'"]),
        ("lockstep status {file} --flow 'A", ["A->B"]),
        ("lockstep config show {file} A", ["'A->B'"]),
        ("lockstep pause {file} sl", ["compopt -o nospace", "slot:"]),
        ("lockstep pause {file} connector:MirrorH", ["MirrorHeartbeatConnector"]),
        ("lockstep stop {file} top", []),
        ("lockstep pause {file} topic:o", []),
    ],
)
def test_bash_completes_subcommands_options_and_values(
    line: str, expected: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE, encoding="utf-8")
    registered, *completions = complete("bash", line.format(file=file), environment, tmp_path)
    assert "-F _lockstep_completion" in registered
    assert completions == expected


def test_file_argument_is_left_to_the_shell(environment: dict[str, str]) -> None:
    question = {"_LOCKSTEP_COMPLETE": "bash_complete", "COMP_LINE": "lockstep status mm2"}
    done = subprocess.run(["lockstep"], capture_output=True, text=True, env=environment | question, check=True)
    assert done.stdout == "file,mm2\n"


@pytest.mark.parametrize(
    ("shell", "registers"),
    [
        ("bash", "complete -o nosort -F _lockstep_completion lockstep"),
        ("zsh", "#compdef lockstep"),
        ("fish", "complete --no-files --command lockstep"),
    ],
)
def test_script_of_a_shell_has_its_function(shell: str, registers: str) -> None:
    answer = lockstep("completion", shell)
    assert answer.exit_code == 0
    assert registers in answer.output
    assert "_lockstep_completion" in answer.output
    assert f"_LOCKSTEP_COMPLETE={shell}_complete" in answer.output


def test_completion_of_another_shell_is_refused_in_a_sentence() -> None:
    answer = lockstep("completion", "csh")
    assert answer.exit_code == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in answer.stderr


def test_names_of_the_state_topic_are_topics_partitions_and_slots() -> None:
    rows = {row.key(): row for row in (topic("t"), topic("gone", phase="deleted"), progress("t"), *at_work(("t", 0)))}
    assert sorted(scope_names(rows)) == ["partition t-0", "slot 0", "topic t"]


@pytest.mark.parametrize(
    ("line", "word"),
    [("a b", "b"), ("a ", ""), ("a 'b c", "'b c"), ("a 'b c' d", "d"), ("a --flow='A", "--flow='A")],
)
def test_last_word_keeps_its_quotes(line: str, word: str) -> None:
    assert last_word(line) == word
