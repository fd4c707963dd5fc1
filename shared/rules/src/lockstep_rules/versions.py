"""The differences between MirrorMaker 2's versions that decide anything in Lockstep (`mm2-versions.md`).

A version chooses rules, not a build. So Lockstep can run beside an MM2 of that version, or take its place, without
mirroring other topics than it did.
"""

import re
from dataclasses import dataclass, field

OLDEST, NEWEST = (3, 0), (4, 4)
DEFAULT_VERSION = "4.3"

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")


class UnknownVersion(ValueError):
    """An error for a version of MM2 without known rules. The text completes the sentence "KEY ..."."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules of one version. The defaults of the excludes count if a file sets none."""

    version: str
    separator_in_internal: bool = field(default=True)
    """KIP-690 (3.1): internal topics take `replication.policy.separator`."""
    narrow_internal: bool = field(default=True)
    """KIP-1074 (4.0): of the topics that end in `.internal` only MM2's own are internal."""
    cycle_by_source: bool = field(default=False)
    """KAFKA-9914 (4.4): a topic that has been on the source before is a cycle too."""
    topics_exclude: str
    """Default of `topics.exclude`, as a list of Java regular expressions."""
    config_properties_exclude: str
    """Default of `config.properties.exclude`."""


def find_rules(version: str = DEFAULT_VERSION) -> RuleSet:
    """Return the rules of a version, `4.3` or `4.3.1`. Raises UnknownVersion."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise UnknownVersion(f"is {version!r}, which is no version of MirrorMaker 2: write it as {DEFAULT_VERSION}")
    release = int(match[1]), int(match[2])
    if not OLDEST <= release <= NEWEST:
        least, most = (f"{major}.{minor}" for major, minor in (OLDEST, NEWEST))
        raise UnknownVersion(f"is {version!r}: the rules of MirrorMaker 2 are known from {least} to {most}")
    return RuleSet(
        version=f"{release[0]}.{release[1]}",
        separator_in_internal=release >= (3, 1),
        narrow_internal=release >= (4, 0),
        cycle_by_source=release >= (4, 4),
        topics_exclude=r"mm2.*\.internal, .*\.replica, __.*"
        if release >= (4, 0)
        else r".*[\-\.]internal, .*\.replica, __.*",
        config_properties_exclude=", ".join(_CONFIGS if release >= (4, 3) else _CONFIGS_BEFORE_4_3),
    )


_CONFIGS = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
_CONFIGS_BEFORE_4_3 = tuple(name.replace(".", r"\.") for name in _CONFIGS if not name.startswith("log."))
