"""The renaming of topics by Java regular expressions (`lockstep.rename`), as Connect's `RegexRouter` does it.

A rename applies to the name that the replication policy gives a topic on the target, as `RegexRouter` does in MM2. The
first rename whose pattern matches the whole name decides. Names of internal topics and of heartbeats never change.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep_rules.patterns.java_matcher import build_java_matcher
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.java_regex.translate import to_python
from lockstep_rules.patterns.matcher import MOST_CHOICES, Matcher, parser
from lockstep_rules.patterns.unmatchable_patterns import compiler
from lockstep_state.names import LONGEST_TOPIC, TOPIC_CHARACTERS

Part = str | int
"""A part of a replacement: text, or the number of a group."""

EXAMPLES = "tT1-._" + "".join(sorted(TOPIC_CHARACTERS))
"""The characters of examples, the first one that a class has."""
MOST_EXAMPLES = 20

REPEATS_NOTHING = (
    "it repeats a part that may match nothing, such as (.*)+. What such a pattern matches can differ from Java: let "
    "the part match one character at least, or do not repeat it"
)
IN_REPETITION = (
    "which is inside a repetition. What such a group holds in the end can differ from Java: put a group round the "
    "repetition, as in ((?:ab)+)"
)


class BadReplacement(ValueError):
    """A replacement is none of Java's `Matcher.replaceFirst`, or names a group that its pattern does not have."""


@dataclass(frozen=True, slots=True)
class Rename:
    """One rename: a pattern that matches whole names, and what takes its place.

    `pattern` and `replacement` are in Java's syntax: `$1` and `${name}` stand for groups, and a backslash for the
    character behind it. It can be pickled.

    Raises:
        UntranslatablePattern: The pattern cannot be used.
        BadReplacement: The replacement cannot be used with this pattern.
    """

    pattern: str
    replacement: str
    _matcher: Matcher = field(init=False, repr=False, compare=False)
    _parts: tuple[Part, ...] = field(init=False, repr=False, compare=False)
    _origin: tuple[re.Pattern[str], tuple[Part, ...]] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        matcher = build_java_matcher(self.pattern, captures=True)
        tree = parser.parse(to_python(self.pattern))
        repeated_parts = list(_repeated_parts(tree))
        if any(part.getwidth()[0] == 0 for part in repeated_parts):
            raise UntranslatablePattern(self.pattern, REPEATS_NOTHING)
        parts = _parse_replacement(self.replacement, tree.state.groups - 1, tree.state.groupdict)
        for group in sorted({group for part in repeated_parts for group in _groups(part)}.intersection(parts)):
            raise BadReplacement(f"the replacement {self.replacement!r} names group {group}, {IN_REPETITION}")
        object.__setattr__(self, "_matcher", matcher)
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_origin", _inverse(tree, parts))

    @property
    def literals(self) -> str:
        """The characters that every new name has, in their order."""
        return "".join(part for part in self._parts if isinstance(part, str))

    @property
    def is_constant(self) -> bool:
        """True if the replacement has no group."""
        return all(isinstance(part, str) for part in self._parts)

    def rename(self, name: str) -> str | None:
        """Return the new name of a topic; None if the pattern does not match all of `name`.

        As in Java, the first match anywhere in the name is replaced, which is nearly always the whole name.
        """
        if not self._matcher.fullmatch(name):
            return None
        match = self._matcher.search(name)
        new = "".join(part if isinstance(part, str) else match.group(part) or "" for part in self._parts)
        return f"{name[: match.start()]}{new}{name[match.end() :]}"

    def examples(self) -> Iterator[str]:
        """Yield names that this rename changes, one for each alternative of its pattern as far as they are simple."""
        names = _examples(parser.parse(to_python(self.pattern)))
        yield from (name for name in names if self.rename(name) not in (None, name))

    def original_name(self, renamed: str) -> str | None:
        """Return a name that becomes `renamed` by this rename; None if there is none, or it is not known.

        It is known if the pattern is text and groups only, and the replacement has each of these groups.
        """
        if self._origin is None:
            return None
        pattern, parts = self._origin
        match = pattern.fullmatch(renamed)
        if match is None:
            return None
        name = "".join(part if isinstance(part, str) else match[f"g{part}"] for part in parts)
        return name if self.rename(name) == renamed else None


def rename_topic(renames: Sequence[Rename], name: str) -> str:
    """Return the name that the first matching rename gives; `name` itself if none matches."""
    return next((new for rename in renames if (new := rename.rename(name)) is not None), name)


def find_original_name(renames: Sequence[Rename], renamed: str) -> str | None:
    """Return the name that became `renamed`; None if no rename makes that name, or which one it was is not known.

    A name that could be the work of several renames has the first one's original.
    """
    for rename in renames:
        name = rename.original_name(renamed)
        if name is not None and rename_topic(renames, name) == renamed:
            return name
    return None


def _parse_replacement(text: str, groups: int, names: Mapping[str, int]) -> tuple[Part, ...]:
    """Return the parts of a replacement in the syntax of Java's `Matcher.appendReplacement`.

    Args:
        text: The replacement.
        groups: The number of groups of the pattern.
        names: The numbers of its named groups.

    Raises:
        BadReplacement: The syntax is wrong, or there is no such group.
    """
    parts: list[Part] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            if position + 1 == len(text):
                raise BadReplacement(f"the replacement {text!r} ends in a backslash with nothing behind it")
            parts.append(text[position + 1])
            position += 2
        elif char == "$":
            group, position = _group_reference(text, position + 1, groups, names)
            parts.append(group)
        else:
            parts.append(char)
            position += 1
    return _joined(parts)


def _group_reference(text: str, position: int, groups: int, names: Mapping[str, int]) -> tuple[int, int]:
    """Return the group that is named behind a `$`, and the position behind its name."""
    named = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, position)
    if named:
        if named[1] not in names:
            raise BadReplacement(
                f"the replacement {text!r} names the group {named[1]!r}, which the pattern does not have"
            )
        return names[named[1]], named.end()
    if position == len(text) or not ("0" <= text[position] <= "9"):
        raise BadReplacement(
            f"the replacement {text!r} has a $ without a group behind it: write $1, ${{name}}, or \\$ for a dollar"
        )
    group = int(text[position])
    if group > groups:
        raise BadReplacement(f"the replacement {text!r} names group {group}, but the pattern has {groups}")
    position += 1
    # As Java reads it: further digits belong to the number as long as there is such a group.
    while position < len(text) and "0" <= text[position] <= "9" and group * 10 + int(text[position]) <= groups:
        group = group * 10 + int(text[position])
        position += 1
    return group, position


def _examples(nodes: Iterable[Any]) -> list[str]:
    """Return names that a pattern may match: each repetition once, each class by one of its members."""
    texts = [""]
    for operator, argument in nodes:
        match str(operator):
            case "LITERAL":
                parts = [chr(argument)]
            case "IN" | "NOT_LITERAL" | "ANY":
                alone = parser.SubPattern(parser.State(), [(operator, argument)])
                parts = [char for char in EXAMPLES if compiler.compile(alone, re.ASCII).match(char)][:1]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least = max(1, int(argument[0]))
                parts = [text * least for text in _examples(argument[2]) if len(text) * least <= LONGEST_TOPIC]
            case "BRANCH":
                parts = [text for branch in argument[1] for text in _examples(branch)]
            case "SUBPATTERN":
                parts = _examples(argument[3])
            case "ATOMIC_GROUP":
                parts = _examples(argument)
            case _:
                continue  # a place; whether the name fits is seen in the end
        texts = [text + part for text in texts for part in parts][:MOST_EXAMPLES]
    return texts


def _inner(operator: str, argument: Any) -> Sequence[Any]:
    """Return the parts of a part of a pattern."""
    match operator:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "BRANCH":
            return list(argument[1])
        case "SUBPATTERN":
            return [argument[3]]
        case "ATOMIC_GROUP":
            return [argument]
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
    return []


def _repeated_parts(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts that may match more than once, also inside each other."""
    for operator, argument in nodes:
        if str(operator).endswith("_REPEAT") and int(argument[1]) > 1:
            yield argument[2]
        for part in _inner(str(operator), argument):
            yield from _repeated_parts(part)


def _groups(nodes: Iterable[Any]) -> Iterator[int]:
    """Yield the numbers of the groups in a part of a pattern."""
    for operator, argument in nodes:
        if str(operator) == "SUBPATTERN" and argument[0] is not None:
            yield argument[0]
        for part in _inner(str(operator), argument):
            yield from _groups(part)


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def _inverse(nodes: Iterable[Any], parts: Sequence[Part]) -> tuple[re.Pattern[str], tuple[Part, ...]] | None:
    """Return the pattern of new names, and the parts of the old ones; None if a new name does not show the old one.

    Args:
        nodes: The syntax tree of the rename's pattern.
        parts: The parts of its replacement.
    """
    origin: list[Part] = []
    for operator, argument in nodes:
        match str(operator):
            case "LITERAL":
                origin.append(chr(argument))
            case "SUBPATTERN" if argument[0] is not None:
                origin.append(argument[0])
            case "AT" if str(argument) in ("AT_BEGINNING_STRING", "AT_END_STRING"):
                pass
            case _:
                return None
    groups = {part for part in origin if isinstance(part, int)}
    if groups != {part for part in parts if isinstance(part, int)} or len(groups) > MOST_CHOICES:
        return None
    text, seen = "", set[int]()
    for part in parts:
        if isinstance(part, str):
            text += re.escape(part)
        else:
            text += f"(?P=g{part})" if part in seen else f"(?P<g{part}>.*)"
            seen.add(part)
    return re.compile(text), _joined(origin)
