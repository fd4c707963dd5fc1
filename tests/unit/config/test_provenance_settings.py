"""`lockstep.provenance` in a file: where it counts, what is refused, and what is said about it."""

from lockstep_state.names import Flow
from tests.unit.config.conftest import LoadText, MistakesOf

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
PAIR = IDENTITY + "B->A.enabled = true\n"
THREE = """\
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
"""
AB, BA = Flow("A", "B"), Flow("B", "A")


def enabled(*flows: str) -> str:
    return "".join(f"{flow}.enabled = true\n" for flow in flows)


def test_provenance_applies_only_where_topics_keep_their_names(load_text: LoadText) -> None:
    renamed = load_text("lockstep.provenance = local\nB->A.enabled = true\n")
    assert {s.data_plane.provenance for s in renamed.flows} == {None}
    assert renamed.unused == ()
    (unused,) = load_text("A->B.lockstep.provenance = local\n").unused
    assert unused.message == "has no effect: the topics of A->B get new names on the target"
    assert load_text(IDENTITY).flow(AB).data_plane.provenance == "relay"


def test_identity_pair_has_local_provenance(load_text: LoadText) -> None:
    pair = load_text(PAIR)
    assert [pair.flow(flow).data_plane.provenance for flow in (AB, BA)] == ["local", "local"]
    pair = load_text(PAIR + "A->B.lockstep.provenance = relay\n")
    assert [pair.flow(flow).data_plane.provenance for flow in (AB, BA)] == ["relay", "local"]


def test_a_flow_knows_which_flows_feed_its_source(load_text: LoadText) -> None:
    pair = load_text(PAIR + "A.group.id = two\n")
    assert pair.flow(AB).data_plane.upstream_state_topics == ("mm2-lockstep-two-state.B.internal",)
    assert pair.flow(BA).data_plane.upstream_state_topics == ("mm2-lockstep-state.A.internal",)


def test_a_flow_that_only_beats_carries_nothing(load_text: LoadText) -> None:
    loaded = load_text(IDENTITY)
    assert loaded.flow(BA).enabled is False
    assert loaded.flow(BA).data_plane.provenance is None


def test_graph_with_two_paths_to_a_cluster_is_refused_with_other_mistakes(mistakes_of: MistakesOf) -> None:
    diamond = ["A->C", "B->D", "C->D", "A->B"]
    text = THREE.replace("A, B, C", "A, B, C, D") + "D.bootstrap.servers = d:9092\n" + IDENTITY + enabled(*diamond)
    mistakes = mistakes_of(whole=text + "tasks.max = many\n")
    assert len(mistakes) == 2
    assert mistakes[0] == (
        "0 lockstep.provenance: records of A reach D twice under the same topic names, by A->B->D and by A->C->D: set "
        "B->D.lockstep.provenance=local or C->D.lockstep.provenance=local, or let these flows select different topics"
    )
    assert mistakes[1].startswith("11 tasks.max")


def test_transactions_cannot_pass_on_what_comes_back(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    once = "B.exactly.once.source.support = enabled\n"
    assert load_text(PAIR + once).flow(AB).data_plane.provenance == "local"
    assert load_text(IDENTITY + once).flow(AB).data_plane.provenance is None, "nothing comes back: nobody asks"
    for text in (IDENTITY + once + "lockstep.provenance = relay\n", PAIR + once + "A->B.lockstep.provenance = relay\n"):
        (mistake,) = mistakes_of(text)
        assert "is relay for A->B, and exactly.once.source.support=enabled for B" in mistake
        assert mistake.endswith("set A->B.lockstep.provenance=local, or B.exactly.once.source.support=disabled")


def test_records_that_do_not_reach_a_cluster_are_noted(load_text: LoadText) -> None:
    notes = [n.message for n in load_text(whole=THREE + IDENTITY + enabled("A->B", "B->A", "B->C", "C->B")).notes]
    assert (
        "records of A do not reach C by A->B->C: B->C copies only what originated on its source; "
        "B->C.lockstep.provenance=relay would let them pass"
    ) in notes


def test_only_one_flow_of_two_changes_configs_of_topics_that_are_there(load_text: LoadText) -> None:
    pair = load_text(PAIR)
    assert [pair.flow(flow).topic_sync.sync_configs for flow in (AB, BA)] == [True, False]
    round_and_round, note = sorted(pair.notes, key=lambda note: note.key)
    assert "MirrorMaker copies every record round and round" in round_and_round.message
    assert note.message.startswith("topics come back from A to B under the same names, so B->A does not change configs")
    turned = load_text(PAIR + "A->B.sync.topic.configs.enabled = false\nB->A.sync.topic.configs.enabled = true\n")
    assert [turned.flow(flow).topic_sync.sync_configs for flow in (AB, BA)] == [False, True]
    assert [note.message for note in turned.notes] == [round_and_round.message]


def test_group_sync_without_exact_positions_is_noted(load_text: LoadText) -> None:
    notes = load_text(PAIR + "A->B.sync.group.offsets.enabled = true\n").notes
    (said,) = [note.message for note in notes if note.key == "sync.group.offsets.enabled"]
    assert "They may skip records that were written on B, and that they had not read on A yet" in said
    assert load_text(IDENTITY + "A->B.sync.group.offsets.enabled = true\n").notes == ()


def test_configs_in_a_ring_are_not_synced_by_the_closing_flow(load_text: LoadText) -> None:
    ring = load_text(whole=THREE + IDENTITY + enabled("A->B", "B->C", "C->A"))
    syncs = {str(s.flow): s.topic_sync.sync_configs for s in ring.flows if s.enabled}
    assert syncs == {"A->B": True, "B->C": True, "C->A": False}
    assert {s.data_plane.provenance for s in ring.flows if s.enabled} == {"relay"}
