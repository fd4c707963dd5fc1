"""The deletion of ACL bindings: only those that Lockstep created and that the source revoked."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.acls.binding_ownership import (
    MIN_REVOKED_S,
    Deletions,
    OwnedBinding,
    Review,
    RevocationHistory,
    deletions,
    review,
)
from lockstep_state.acl_binding import AclBinding

TOPICS = frozenset({"TOPIC"})
BOTH = frozenset({"TOPIC", "GROUP"})


def acl(name: str = "orders", operation: str = "READ", *, resource: str = "TOPIC") -> AclBinding:
    return AclBinding(name=name, principal="User:anna", operation=operation, permission="ALLOW", resource=resource)


def ours(name: str = "orders", operation: str = "READ") -> OwnedBinding:
    return OwnedBinding(acl(f"A.{name}", operation), name)


def our_group(name: str = "billing") -> OwnedBinding:
    return OwnedBinding(acl(name, resource="GROUP"), name)


DESCRIBE = ours(operation="DESCRIBE")
ELSE = acl("something-else")
"""On the source, so that it says something."""


def reviewed(
    owned: Sequence[OwnedBinding],
    source: Collection[AclBinding] = (ELSE,),
    *,
    target: Collection[AclBinding] | None = None,
    wanted: Collection[AclBinding] = (),
    resources: Collection[str] = TOPICS,
) -> Review:
    bindings = {owned_binding.binding for owned_binding in owned} if target is None else target
    return review(owned, frozenset(source), bindings, wanted, resources)


def decided(
    result: Review, history: RevocationHistory, now: float, *, limit: int = 10, shared: Sequence[str] = ()
) -> Deletions:
    return deletions(result, history, now, limit=limit, shared=shared, source="A", target="B")


def after_two_looks(result: Review, *, limit: int = 10, shared: Sequence[str] = ()) -> Deletions:
    history = RevocationHistory().with_reading(7, 0.0, result.revoked).with_reading(7, MIN_REVOKED_S, result.revoked)
    return decided(result, history, MIN_REVOKED_S, limit=limit, shared=shared)


@pytest.mark.parametrize(
    ("owned", "facts", "expected"),
    [
        ([ours()], {}, Review(revoked=(ours(),))),
        # The topic is no longer selected, or its prefix has become too wide: nobody revoked anything.
        ([ours()], {"source": [acl("orders")]}, Review()),
        ([ours()], {"source": [acl("orders", "ALL")]}, Review()),
        ([DESCRIBE], {"source": [acl("orders", "ALL")]}, Review(revoked=(DESCRIBE,))),
        ([ours()], {"source": [acl("renamed")], "wanted": [acl("A.orders")]}, Review()),
        ([ours()], {"target": []}, Review(gone=(ours(),))),  # another client deleted it
        ([ours()], {"source": []}, Review(silent=(ours(),))),
        # Topics say nothing about groups.
        ([ours(), our_group()], {"resources": BOTH}, Review(revoked=(ours(),), silent=(our_group(),))),
        ([our_group()], {"target": [], "resources": TOPICS}, Review()),
    ],
)
def test_own_binding_is_sorted_out_by_what_both_sides_have(
    owned: list[OwnedBinding], facts: dict[str, Any], expected: Review
) -> None:
    assert reviewed(owned, **facts) == expected


class TestLooks:
    def test_revocation_seen_once_deletes_nothing(self) -> None:
        result = reviewed([ours()])
        assert decided(result, RevocationHistory().with_reading(7, 100.0, result.revoked), 100.0) == Deletions()
        assert after_two_looks(result).due == (ours(),)

    @pytest.mark.parametrize(
        ("readings", "now", "settled"),
        [
            ([(7, 100.0, [ours()]), (7, 100.1, [ours()])], 100.1, False),
            ([(7, 0.0, [ours()]), (7, 10.0, []), (7, 20.0, [ours()])], 20.0, False),  # seen again in between
            ([(7, 0.0, [ours()]), (9, 20.0, [ours()])], 20.0, False),  # another term
            ([(7, 0.0, [ours()]), (9, 20.0, [ours()]), (9, 30.0, [ours()])], 30.0, True),
        ],
    )
    def test_revocation_is_settled_by_readings_of_one_term_some_time_apart(
        self, *, readings: list[tuple[int, float, list[OwnedBinding]]], now: float, settled: bool
    ) -> None:
        history = RevocationHistory()
        for reading in readings:
            history = history.with_reading(*reading)
        assert history.is_settled(ours().binding, now) is settled


class TestDeletions:
    def test_more_revocations_than_the_limit_delete_nothing_and_are_named(self) -> None:
        revoked = [ours(f"orders-{n}") for n in range(11)]
        result = after_two_looks(reviewed(revoked))
        assert result.due == ()
        assert result.notes == (
            "Lockstep leaves 11 bindings on B that A revoked: that is more than lockstep.acls.delete.max=10 at once; "
            "if it is meant, start acl-sync once with 11",
        )
        assert len(after_two_looks(reviewed(revoked[:10])).due) == 10

    def test_revocation_seen_once_counts_for_the_limit(self) -> None:
        """A source that is being emptied shall not be followed piece by piece."""
        revoked = [ours(f"orders-{n}") for n in range(11)]
        history = RevocationHistory().with_reading(7, 0.0, revoked[:5]).with_reading(7, 60.0, revoked)
        assert decided(reviewed(revoked), history, 60.0).due == ()

    def test_source_without_acls_is_named(self) -> None:
        result = after_two_looks(reviewed([ours()], []))
        assert result.due == ()
        assert result.notes[0].startswith(
            "A has no ACLs about topics at all, so Lockstep leaves one binding that it made on B"
        )

    def test_own_binding_shared_with_another_flow_is_kept(self) -> None:
        kept = OwnedBinding(acl("orders"), "orders")
        result = after_two_looks(reviewed([kept, ours()]), shared=["C->B"])
        assert result.due == (ours(),)
        assert "C->B may need these ACLs" in result.notes[0]
        assert after_two_looks(reviewed([kept, ours()])).due == (kept, ours())


NAMES = st.sampled_from(["a", "b", "c", "d"])
BINDINGS = st.builds(acl, NAMES, st.sampled_from(["READ", "ALL", "DESCRIBE"]), resource=st.sampled_from(sorted(BOTH)))
ROUNDS = st.lists(
    st.tuples(
        st.frozensets(BINDINGS, max_size=8),  # what the source says
        st.frozensets(BINDINGS, max_size=8),  # what is wanted for other reasons
        st.sampled_from([7, 7, 7, 9]),  # the term
        st.floats(0, 20),  # seconds since the round before
    ),
    min_size=1,
    max_size=6,
)
OWNED = st.builds(lambda binding, source: OwnedBinding(binding, source), BINDINGS, NAMES)


@given(
    st.lists(OWNED, max_size=8, unique_by=lambda one: one.binding),
    st.frozensets(BINDINGS, max_size=8),
    ROUNDS,
    st.integers(1, 4),
    st.sampled_from([(), ("C->B",)]),
    st.sampled_from([TOPICS, BOTH]),
)
def test_only_own_unwanted_bindings_are_deleted(
    owned: list[OwnedBinding],
    others: frozenset[AclBinding],
    rounds: list[tuple[frozenset[AclBinding], frozenset[AclBinding], int, float]],
    limit: int,
    shared: tuple[str, ...],
    resources: frozenset[str],
) -> None:
    mine = {owned_binding.binding: owned_binding for owned_binding in owned}
    target = others | mine.keys()
    now, history = 0.0, RevocationHistory()
    refused: dict[AclBinding, list[tuple[int, float]]] = {}
    for source, wanted, term, passed in rounds:
        now += passed
        result = review(owned, source, target, wanted, resources)
        history = history.with_reading(term, now, result.revoked)
        due = deletions(result, history, now, limit=limit, shared=shared, source="A", target="B").due
        for binding in mine:
            backed = any(origin in source for origin in mine[binding].origins()) or binding in wanted
            assert not (backed and mine[binding] in due)
            seen = refused.setdefault(binding, [])
            if backed or (seen and seen[-1][0] != term):
                seen.clear()
            if not backed:
                seen.append((term, now))
        assert len(due) <= limit
        for owned_binding in due:
            assert mine[owned_binding.binding] == owned_binding
            assert owned_binding.binding in target
            assert owned_binding.binding.resource in resources
            assert any(binding.resource == owned_binding.binding.resource for binding in source)
            assert not (shared and owned_binding.keeps_its_name)
            looked = refused[owned_binding.binding]
            assert len(looked) >= 2
            assert now - looked[0][1] >= MIN_REVOKED_S
