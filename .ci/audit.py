"""`make audit`: the locked packages against the advisories of the Python Package Index, through pip-audit.

It is never clean by mistake. An index that has no advisories to give (a mirror, mostly) answers like one that knows of
none, so a release that is known to be vulnerable is asked about as well: where that one passes, nothing was audited.
Exit codes: 0 nothing is known against any locked package, 1 something is, 2 it could not be found out.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"

KNOWN_BAD = "idna==3.6"
"""CVE-2024-3651, since April 2024."""

CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2
WITHIN_S = 600


@dataclass(frozen=True, slots=True)
class Verdict:
    """An exit code and what to say."""

    code: int
    lines: tuple[str, ...]


def judge(lock: Mapping[str, Any] | None, probe: Mapping[str, Any] | None, locked: Sequence[str]) -> Verdict:
    """What pip-audit's two answers come to: about the lock, and about what is known to be vulnerable. None: no answer.
    `locked`: the names that have to be in the first."""
    if lock is None or probe is None:
        return Verdict(UNKNOWN, ("not audited: pip-audit gave no answer; is there a network?",))
    answered = {one["name"]: one for one in lock["dependencies"]}
    skipped = sorted(name for name, one in answered.items() if "skip_reason" in one)
    missing = sorted(set(locked) - answered.keys())
    found = [
        f"{name} {one['version']}: {bad['id']} ({', '.join(bad.get('aliases') or ()) or 'no alias'}), "
        f"mended in {', '.join(bad['fix_versions']) or 'no release yet'}"
        for name, one in sorted(answered.items())
        for bad in one.get("vulns", ())
    ]
    if found:
        return Verdict(VULNERABLE, (*found, "raise the pins: make lock UPGRADE=1"))
    if not any(one.get("vulns") for one in probe["dependencies"]):
        return Verdict(
            UNKNOWN,
            (
                f"not audited: the index here knows of nothing against {KNOWN_BAD}, so it has no advisories to give",
                "run it where https://pypi.org/pypi/NAME/VERSION/json can be reached",
            ),
        )
    if skipped or missing:
        return Verdict(UNKNOWN, (f"not audited: {', '.join([*skipped, *missing])}",))
    return Verdict(CLEAN, (f"nothing is known against any of {len(answered)} packages",))


def names_in(lock: str) -> list[str]:
    """The packages of a lock that are wanted on this machine or another one."""
    return [line.partition("==")[0] for line in lock.splitlines() if "==" in line and line[0].isalnum()]


def audited(requirements: Path, *options: str) -> Mapping[str, Any] | None:
    """What pip-audit says about them. Its own words are shown only where it gives no answer: of an index that knows of
    nothing it says that nothing is vulnerable."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(requirements), "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "20", *options]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    except subprocess.TimeoutExpired:
        return None
    try:
        answer: Mapping[str, Any] = json.loads(ran.stdout)
    except json.JSONDecodeError:
        sys.stderr.write(ran.stderr)
        return None
    return answer


def main() -> None:
    text = LOCK.read_text()
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.txt")
        probe.write_text(KNOWN_BAD + "\n")
        # Without markers: what is installed elsewhere only is audited here too.
        everything = Path(folder, "lock.txt")
        everything.write_text("".join(f"{line.split(' ')[0]}\n" for line in text.splitlines() if "==" in line))
        verdict = judge(audited(everything, "--no-deps"), audited(probe, "--no-deps"), names_in(text))
    sys.stdout.write("".join(f"audit: {line}\n" for line in verdict.lines))
    sys.exit(verdict.code)


if __name__ == "__main__":
    main()
