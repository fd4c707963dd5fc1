"""What MM2 calls topics, its own topics and progress, by the aliases and separators of a file: MM2's classes are asked
about the same lines."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import ConfigurationError, FlowSettings, load
from lockstep_rules.policy import is_cycle
from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.names import Flow
from tests.support.jvm import call
from tests.unit.config.conftest import TWO_CLUSTERS

MIRROR = "org.apache.kafka.connect.mirror"
AB = Flow("A", "B")
TOPICS = (
    *("orders", "t", "dc1.orders", "dc1orders", "B.orders", "fooBar", "dc2_orders", "B_orders", "dc1_B_orders"),
    *("heartbeats", "dc1.heartbeats", "dc1heartbeats", "checkpointsinternal", "dc1.checkpoints.internal"),
    *("dc1checkpointsinternal", "mm2-offset-syncsinternal", "mm2-offset-syncs.B.internal", "A-x.internal", "__x"),
)
OLD_WAY = ("replication.policy.separator =", "source.cluster.alias =", "target.cluster.alias =")
ARROW = tuple(f"A->B.{line}" for line in OLD_WAY)
CASES = (
    (),
    ("source.cluster.alias = dc1",),
    ("source.cluster.alias = dc1", "target.cluster.alias = dc2"),
    ("A->B.source.cluster.alias = dc1", "source.cluster.alias = dc2"),
    ("A.alias = dc1", "B.alias = dc2", "source.cluster.alias = x", "target.cluster.alias = y"),
    ("A.alias = dc1", "A->B.source.cluster.alias ="),
    ("A.source.cluster.alias = dc1", "B.alias ="),
    ("alias = dc1", "A->B.alias = dc2"),
    ("target.cluster.alias = dc2", "offset-syncs.topic.location = target", "source.cluster.alias = dc1"),
    OLD_WAY,
    ARROW,
    OLD_WAY[:1],
    OLD_WAY[1:],
    OLD_WAY[1:2],
    OLD_WAY[2:],
    OLD_WAY[:2],
    (OLD_WAY[0], OLD_WAY[2]),
    (OLD_WAY[0], *ARROW[1:]),
    (ARROW[0], *OLD_WAY[1:]),
    (*OLD_WAY, "A->B.source.cluster.alias = dc1"),
    (*OLD_WAY, "A->B.replication.policy.separator = _"),
    (*OLD_WAY, "A.alias = A", "B.alias = B"),
    (*OLD_WAY, "replication.policy.internal.topic.separator.enabled = false"),
    (*OLD_WAY, "offset-syncs.topic.location = target"),
    (*OLD_WAY[:2], f"replication.policy.class = {MIRROR}.IdentityReplicationPolicy"),
    ("source.cluster.alias = dc1", f"replication.policy.class = {MIRROR}.IdentityReplicationPolicy"),
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a flow is called by one of the two."""

    aliases: tuple[str, str]
    remote: Mapping[str, str]
    selected: Mapping[str, bool]
    cycles: Mapping[str, bool]
    checkpoints: str
    syncs: str
    offsets: str
    group: str
    progress: Mapping[str, Any]


def of_java(java: Any, lines: Sequence[str]) -> Names:
    every = properties(java, lines)
    mirror = java.jvm.org.apache.kafka.connect.mirror
    flow = mirror.SourceAndTarget(AB.source, AB.target)
    of_file = mirror.MirrorMakerConfig(every)
    config = of_file.connectorBaseConfig(flow, java.jvm.java.lang.Class.forName(f"{MIRROR}.MirrorSourceConnector"))
    worker = of_file.workerConfig(flow)
    source = mirror.MirrorSourceConfig(config)
    policy, topics = inherited(java, source, "replicationPolicy"), call(java, source, "topicFilter")
    aliases = [str(inherited(java, source, f"{side}ClusterAlias")) for side in ("source", "target")]
    connector = made(java, mirror.SourceAndTarget(*aliases), policy, topics, call(java, source, "configPropertyFilter"))
    selects, is_cycle_there = (asked(java, connector, one) for one in ("shouldReplicateTopic", "isCycle"))
    partition = java.jvm.org.apache.kafka.common.TopicPartition("orders", 3)
    kinds = ["org.apache.kafka.common.TopicPartition", "java.lang.String"]
    return Names(
        aliases=(aliases[0], aliases[1]),
        remote={t: str(policy.formatRemoteTopic(aliases[0], t)) for t in TOPICS},
        selected={t: selects(t) for t in TOPICS},
        cycles={t: is_cycle_there(t) for t in TOPICS},
        checkpoints=str(call(java, mirror.MirrorCheckpointConfig(config), "checkpointsTopic")),
        syncs=str(call(java, source, "offsetSyncsTopic")),
        offsets=str(worker["offset.storage.topic"]),
        group=str(worker["group.id"]),
        progress=dict(call(java, f"{MIRROR}.MirrorUtils", "wrapPartition", kinds, [partition, aliases[0]])),
    )


def properties(java: Any, lines: Sequence[str]) -> Any:
    """As MM2 reads its file."""
    read = java.jvm.java.util.Properties()
    read.load(java.jvm.java.io.StringReader(TWO_CLUSTERS + "\n".join(lines)))
    java_map = java.jvm.java.util.HashMap()
    for key in read.stringPropertyNames():
        java_map.put(key, read.getProperty(key))
    return java_map


def inherited(java: Any, target: Any, method: str) -> Any:
    """What `call` finds on a class itself, of the one that it extends."""
    declared = target.getClass().getSuperclass().getDeclaredMethod(method, java.new_array(java.jvm.java.lang.Class, 0))
    declared.setAccessible(True)
    return declared.invoke(target, java.new_array(java.jvm.java.lang.Object, 0))


def asked(java: Any, connector: Any, method: str) -> Callable[[str], bool]:
    """As `call`, of a method that takes a topic; few questions to the JVM, for there are many topics."""
    kinds = java.new_array(java.jvm.java.lang.Class, 1)
    kinds[0] = java.jvm.java.lang.Class.forName("java.lang.String")
    declared = connector.getClass().getDeclaredMethod(method, kinds)
    declared.setAccessible(True)
    values = java.new_array(java.jvm.java.lang.Object, 1)

    def ask(topic: str) -> bool:
        values[0] = topic
        return bool(declared.invoke(connector, values))

    return ask


def made(java: Any, *arguments: Any) -> Any:
    """A MirrorSourceConnector by the constructor of its own tests."""
    connector = java.jvm.java.lang.Class.forName(f"{MIRROR}.MirrorSourceConnector")
    own = next(
        one
        for one in connector.getDeclaredConstructors()
        if one.getParameterCount() == len(arguments) and "SourceAndTarget" in one.toString()
    )
    own.setAccessible(True)
    values = java.new_array(java.jvm.java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        values[at] = argument
    return own.newInstance(values)


def of_ours(folder: Path, lines: Sequence[str]) -> FlowSettings:
    file = folder / "mm2.properties"
    file.write_text(TWO_CLUSTERS + "\n".join(lines), encoding="utf-8")
    return load(file, {}).flow(AB)


def names(settings: FlowSettings) -> Names:
    key, _ = encode_source_progress(settings.aliases.source, "orders", 3, 7)
    assert key is not None
    _, progress = json.loads(key)
    return Names(
        aliases=(settings.aliases.source, settings.aliases.target),
        remote={t: settings.remote_topic(t) for t in TOPICS},
        selected={t: settings.replicates(t) for t in TOPICS},
        cycles={t: is_cycle(settings.policy, t, settings.aliases) for t in TOPICS},
        checkpoints=settings.checkpoints_topic,
        syncs=settings.offset_syncs_topic,
        offsets=settings.control.offset_storage_topic,
        group=settings.group_id or f"{settings.flow.source}-mm2",
        progress=progress,
    )


BRIEFLY = 6
"""Cases that `make test` has: one takes a second and a half."""


@pytest.mark.parametrize(
    "lines",
    [*CASES[:BRIEFLY], *(pytest.param(case, marks=pytest.mark.long) for case in CASES[BRIEFLY:])],
    ids=lambda lines: ", ".join(lines) or "none",
)
def test_names_are_mm2s(java: Any, tmp_path: Path, lines: Sequence[str]) -> None:
    assert names(of_ours(tmp_path, lines)) == of_java(java, lines)


def test_the_old_way_to_keep_names(java: Any, tmp_path: Path) -> None:
    """The figures of the case that most files have."""
    for found in (names(of_ours(tmp_path, OLD_WAY)), of_java(java, OLD_WAY)):
        assert (found.remote["orders"], found.selected["orders"]) == ("orders", True)
        assert (found.checkpoints, found.syncs) == ("checkpointsinternal", "mm2-offset-syncsinternal")
        assert found.progress == {"cluster": "", "partition": 3, "topic": "orders"}
        assert (found.offsets, found.group) == ("mm2-offsets.A.internal", "A-mm2")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_names_are_mm2s_in_whatever_combination(java: Any, tmp_path: Path) -> None:
    compared, refused = 0, 0
    for number in range(20):
        dice = random.Random(f"aliases-{number}")
        lines = [
            f"{prefix}{key} = {dice.choice(values)}"
            for key, prefixes, values in (
                ("source.cluster.alias", ("", "A->B."), ("", "dc1", "o", "A", "d.c")),
                ("target.cluster.alias", ("", "A->B."), ("", "dc2", "B", "r", "e.u")),
                ("alias", ("A.", "B."), ("", "dc1", "dc2")),
                ("replication.policy.separator", ("", "A->B."), ("", ".", "_", "__")),
                ("replication.policy.internal.topic.separator.enabled", ("",), ("true", "false")),
                ("offset-syncs.topic.location", ("A->B.",), ("source", "target")),
                ("replication.policy.class", ("",), (f"{MIRROR}.IdentityReplicationPolicy", "")),
            )
            for prefix in prefixes
            if dice.random() < 0.5
        ]
        lines = [line for line in lines if not line.endswith("class = ")]
        theirs = of_java(java, lines)
        try:
            ours = names(of_ours(tmp_path, lines))
        except ConfigurationError as raised:
            mistake = str(raised)
            refused += 1
        else:
            mistake = ""
        if mistake:  # under a policy that keeps names, one alias on both sides: MM2 mirrors nothing then
            assert "makes both aliases of A->B" in mistake, lines
            assert theirs.cycles["orders"]
            continue
        # An alias that holds the separator is no cycle to MM2, which goes round then; here it is.
        if not any(separator in ours.aliases[1] for separator in ("_", ".") if f"separator = {separator}" in lines):
            assert ours == theirs, lines
            compared += 1
        else:
            assert ours.remote == theirs.remote, lines
    assert (compared > 8, refused < 10) == (True, True), (compared, refused)
