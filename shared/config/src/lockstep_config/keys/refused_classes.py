"""Java classes that a file names and that cannot run here: the message about them, and what has the same effect.

This module is pure.
"""

from lockstep_config.keys.key_types import Key
from lockstep_config.keys.mm2_keys import IDENTITY_POLICIES
from lockstep_config.keys.python_classes import JAVA_KEYS

KEEPS_NAMES = IDENTITY_POLICIES[0]

KNOWN_TO_KEEP_NAMES = frozenset(
    {
        "ch.mawileo.kafka.mm2.IdentityReplicationPolicy",
        "ch.mawileo.kafka.mm2.PrefixlessReplicationPolicy",
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "com.instaclustr.kafka.connect.mirror.SimpleReplicationPolicy",
        "com.kafka.mirror.PrefixlessReplicationPolicy",
        "com.redhat.mronconi.kafka.connect.mirror.IdentityReplicationPolicy",
    }
)
"""Published classes that keep the names of topics.

Those that extend `DefaultReplicationPolicy` keep the name of `heartbeats` as well, which `IdentityReplicationPolicy`
does not.
"""


def refused_class(value: str, key: Key) -> str:
    """Return why a key does not take the Java class `value`; empty if it does."""
    value = value.strip()
    if not value or value in key.choices:
        return ""
    if with_package := next((choice for choice in key.choices if choice.rpartition(".")[2] == value), ""):
        return f"is {value!r}, which no class is called: write it with its package, {with_package}"
    instead = f"; it may be {', '.join(key.choices)}" if key.choices else ": remove it"
    if value in KNOWN_TO_KEEP_NAMES:
        return (
            f"is {value!r}, which leaves topics their names; Java classes cannot run here, and {KEEPS_NAMES} does the "
            "same for every topic but heartbeats: write that"
        )
    if key.name == "replication.policy.class":
        instead += f"; if it only leaves the alias out of topics' names, {KEEPS_NAMES} does the same"
    if key.name in JAVA_KEYS:
        instead += f"; the same rule can be given in Python: {JAVA_KEYS[key.name]}=package.module:Class"
    return f"is {value!r}, which is refused: {key.reason}{instead}"
