"""The import of kio without hypothesis, which kio imports where a developer has it installed."""

import sys
from importlib import import_module
from typing import Any


def load_kio() -> Any:
    """Return `kio.serial`, after kio's own types were imported.

    With hypothesis that would cost a second of processor time and 200 MB, none of which is used. A later import of
    hypothesis succeeds.
    """
    hides = "hypothesis" not in sys.modules
    if hides:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]  # None is Python's way to say "not there"
    try:
        return import_module("kio.serial")
    finally:
        if hides:
            del sys.modules["hypothesis"]
