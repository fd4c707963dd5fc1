"""One cluster under two aliases, as far as a file shows it."""

import pytest

from lockstep_config.resolve import precedence

from .conftest import A_TO_B, LoadText

WHOLE = "clusters = A, B\nA.bootstrap.servers = {a}\nB.bootstrap.servers = {b}\nA->B.enabled = true\n"


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("a:9092", "a:9092", "a:9092"),
        ("a:9092,b:9092", "c:9092, B:9092", "b:9092"),
        ("a:9092", "a:9093", ""),
        ("a:9092,a:9092", "b:9092", ""),
    ],
)
def test_an_address_in_common_is_remarked_on(a: str, b: str, shared: str, load_text: LoadText) -> None:
    notes = [note for note in load_text(whole=WHOLE.format(a=a, b=b)).notes if "one cluster" in note.message]
    assert [(note.key, note.message.partition(",")[0]) for note in notes] == (
        [("B.bootstrap.servers", f"has {shared}")] if shared else []
    )


@pytest.mark.parametrize(("topic", "replicated"), [("orders", False), ("heartbeats", True), ("A.heartbeats", False)])
def test_a_topic_that_keeps_its_name_is_not_replicated_on_one_cluster(
    topic: str, replicated: bool, load_text: LoadText
) -> None:
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    settings = load_text(f"replication.policy.class = {identity}\n").flow(A_TO_B)
    assert settings.replicates(topic, one_cluster=True) is replicated
    assert settings.replicates(topic)


def test_exact_cycles_and_heartbeats_keys_are_read(load_text: LoadText) -> None:
    usual = load_text("").flow(A_TO_B)
    exact = load_text("lockstep.cycles = exact\nA->B.lockstep.heartbeats.topics = exact\n").flow(A_TO_B)
    assert (usual.topic_sync.cycles_exact, exact.topic_sync.cycles_exact) == (False, True)
    assert usual.policy.is_heartbeats_topic("x.heartbeats")
    assert not exact.policy.is_heartbeats_topic("x.heartbeats")
    assert exact.policy.is_heartbeats_topic("B.A.heartbeats")
    assert exact.topic_sync.aliases == frozenset("AB")


def test_every_alias_has_those_of_the_connectors(load_text: LoadText) -> None:
    settings = load_text("A->B.source.cluster.alias = dc1\n").flow(A_TO_B)
    assert settings.topic_sync.aliases == {"A", "B", "dc1"}
    assert precedence.every_alias(precedence.Layers({}, {}, {}), A_TO_B) == {"A", "B"}


def test_own_copies_are_not_replicated_within_one_cluster(load_text: LoadText) -> None:
    flow = load_text("").flow(A_TO_B)
    assert flow.replicates("A.orders")
    assert not flow.replicates("A.orders", one_cluster=True)
    assert flow.replicates("orders", one_cluster=True)
