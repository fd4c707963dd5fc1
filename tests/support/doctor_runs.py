"""`lockstep doctor` as somebody types it, and its findings by code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands import lockstep


@dataclass(frozen=True, slots=True)
class DoctorRun:
    """What one run found."""

    findings: tuple[Mapping[str, Any], ...]

    def results(self, subject: str) -> dict[str, str]:
        """Return the result of each code for one cluster or flow. The last finding of a code counts."""
        return {finding["code"]: finding["result"] for finding in self.findings if finding["subject"] == subject}

    def one(self, code: str, subject: str, *words: str) -> Mapping[str, Any]:
        """Return the one finding of the code about the subject; with `words` the one whose detail has them."""
        about_subject = [
            finding for finding in self.findings if (finding["code"], finding["subject"]) == (code, subject)
        ]
        (wanted,) = (candidate for candidate in about_subject if all(word in candidate["detail"] for word in words))
        return wanted

    def not_ok(self) -> dict[tuple[str, str], str]:
        """Return what is not ok by code and subject, without what depends on this machine."""
        return {
            (finding["code"], finding["subject"]): finding["result"]
            for finding in self.findings
            if finding["result"] not in ("ok", "skipped") and not finding["code"].startswith("LD1")
        }


def run_doctor(file: Path, *arguments: str, code: int = 0) -> DoctorRun:
    """Run `doctor`, which has to end with this exit code. Each answer may take longer than by default."""
    patience = () if "--timeout" in arguments else ("--timeout", "30")
    body = json.loads(lockstep("doctor", file, *arguments, *patience, "--output", "json", code=code))
    assert body["success"] is (code == 0)
    return DoctorRun(tuple(check for category in body["categories"] for check in category["checks"]))
