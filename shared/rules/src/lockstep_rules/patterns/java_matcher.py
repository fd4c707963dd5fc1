"""Matchers of Java's regular expressions."""

from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.java_regex.translate import to_python
from lockstep_rules.patterns.matcher import Matcher, UnboundedPattern, build_matcher


def build_java_matcher(pattern: str, *, captures: bool = False) -> Matcher:
    """Compile a pattern in Java's syntax. For `captures` see `build_matcher`.

    Raises:
        UntranslatablePattern: The pattern cannot be used.
    """
    try:
        return build_matcher(to_python(pattern), captures)
    except UnboundedPattern as exc:
        reason = f"it can take exponential time on some names, and {exc}: remove nested repetitions such as (a+)+"
        raise UntranslatablePattern(pattern, reason) from exc
