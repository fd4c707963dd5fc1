"""Files that a template engine should have rendered first: Helm, Jinja (Ansible), ERB (Puppet, Chef).

This module is pure.
"""

import re
from pathlib import Path

from lockstep_config.text.config_errors import Problem

_MARK = re.compile(r"\{\{.*?(?:\}\}|$)|\{%.*?(?:%\}|$)|<%.*?(?:%>|$)")
_CONTROL = re.compile(r"\s*(?:\{%|\{#|<%|\{\{-|\{\{\s*(?:if|with|range|else|end|define|include|template)\b)")
"""Lines that begin with a statement of an engine. They are no lines of the file itself."""
_HELM = re.compile(r"\{\{-?\s*(?:(?:if|with|range|include|template|toYaml|tpl|end|else|define)\b|/\*|\$?\.)")
_JINJA_SUFFIXES = (".j2", ".jinja", ".jinja2")
_RENDERED_BY = {
    "Helm": "helm template CHART",
    "Jinja": "Ansible's module template, or another that renders Jinja",
    "ERB": "Puppet, Chef or erb",
}


def find_template(data: bytes, file: Path, *, unreadable: bool) -> Problem | None:
    """Return what is wrong with a file that is a template, or None if it is none.

    A placeholder in a key or a value is no template by itself: its own line says so. A file is one if a line begins
    with a statement, or if it is `unreadable` and has a mark anywhere.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        mark = _MARK.search(line)
        if mark is None or line.lstrip().startswith(("#", "!")):
            continue
        if unreadable or _CONTROL.match(line):
            engine = _engine(lines, file)
            article = "an" if engine == "ERB" else "a"
            message = (
                f"is {article} {engine} template, by {mark[0].strip()[:60]!r}: render it first, with "
                f"{_RENDERED_BY[engine]}, and name the file that comes out"
            )
            return Problem(file, number, "", message)
    return None


def _engine(lines: list[str], file: Path) -> str:
    if file.suffix.lower() in _JINJA_SUFFIXES:
        return "Jinja"
    if any(_HELM.search(line) for line in lines):
        return "Helm"
    return "ERB" if any("<%" in line for line in lines) and not any("{%" in line for line in lines) else "Jinja"
