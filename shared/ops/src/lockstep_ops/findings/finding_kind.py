"""The entry of which every catalogue of findings is made (no I/O)."""

import re
from dataclasses import dataclass, field
from posixpath import dirname, normpath
from typing import ClassVar

from lockstep_state import project_address

_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_LINK_IN_BRACKETS = re.compile(rf"\({_LINK.pattern}\)")
_EMPHASIS = re.compile(r"(?<![\w.`*])\*(\w[^*`]*)\*")


def markdown_to_text(text: str) -> str:
    """Return Markdown as a terminal shows it: without marks, and of each link its words."""
    return _without_marks(_LINK.sub(r"\1", text))


def _without_marks(text: str) -> str:
    return _EMPHASIS.sub(r"\1", text).replace("`", "")


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding: what it means, and what to do. Both texts are Markdown.

    A code keeps its meaning for ever, and is never used for something else.
    """

    FAMILY: ClassVar[str]
    """The name of codes of this kind, as `lockstep explain` shows it."""
    PAGE: ClassVar[str]
    """The page that is made of its entries, or the one that helps."""
    SECTION: ClassVar[str | None] = None
    """The anchor that all entries share, "" for the whole page. None if each has a section of its own."""

    code: str
    title: str
    meaning: str
    fix: str
    """The remedy. It is "" if there is nothing to do, or if the title says it."""
    severity: str = ""
    """The severity of all findings of this kind. It is "" if each finding has its own."""

    @property
    def anchor(self) -> str:
        """Return the anchor of its section in the page."""
        return self.code.lower() if self.SECTION is None else self.SECTION

    @property
    def page(self) -> str:
        """Return its page and section, such as `docs/reference/doctor.md#ld301`."""
        return f"{self.PAGE}#{self.anchor}" if self.anchor else self.PAGE

    @property
    def address(self) -> str:
        """Return the address of its published section."""
        return project_address.page(self.page)

    @property
    def plain_fix(self) -> str:
        """Return the fix, as a line of a finding has it."""
        return markdown_to_text(self.fix)

    @property
    def texts(self) -> dict[str, str]:
        """Return its texts by name, as a terminal and the console show them."""
        return {name: self.with_paths(text) for name, text in self._markdown().items()}

    def _markdown(self) -> dict[str, str]:
        return {"title": self.title, "meaning": self.meaning, "fix": self.fix}

    def as_json(self) -> dict[str, str]:
        """Return the entry for programs."""
        return {"code": self.code, "kind": self.FAMILY, "severity": self.severity, **self.texts, "page": self.address}

    def links(self) -> tuple[str, ...]:
        """Return the targets of the links in its texts, as paths in the repository."""
        return tuple(self._path(target) for _, target in _LINK.findall(f"{self.meaning} {self.fix}"))

    def with_paths(self, text: str) -> str:
        """Return one of its texts as a terminal shows it, with the path of each page that it links to."""
        alone = _LINK_IN_BRACKETS.sub(self._in_brackets, text)
        return _without_marks(_LINK.sub(self._words_and_path, alone))

    def _in_brackets(self, link: re.Match[str]) -> str:
        path = self._path(link[2])
        return f"({path})" if link[1] == path else f"({link[1]}: {path})"

    def _words_and_path(self, link: re.Match[str]) -> str:
        path = self._path(link[2])
        return path if link[1] == path else f"{link[1]} ({path})"

    def _path(self, target: str) -> str:
        return self.PAGE + target if target.startswith("#") else normpath(f"{dirname(self.PAGE)}/{target}")


@dataclass(frozen=True, slots=True)
class GuidedFindingKind(FindingKind):
    """A kind of finding whose entry also says where to look first."""

    look_at: str = field(kw_only=True)

    def _markdown(self) -> dict[str, str]:
        return {"title": self.title, "meaning": self.meaning, "look_at": self.look_at, "fix": self.fix}
