"""The plan of ACLs: each ACL follows its topic by MirrorMaker 2's rule (`mm2-behaviour.md` §4.6)."""

from collections.abc import Iterable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.acls.acl_plan import NAMED, AclPlan, AclRule, LeftOutBinding, LeftOutReason, judge, plan
from lockstep_state.acl_binding import UNKNOWN, AclBinding

RULE = AclRule(replicates=lambda topic: not topic.startswith("hidden"), remote_topic=lambda topic: f"A.{topic}")


def planned(source: Iterable[AclBinding], target: Iterable[AclBinding], rule: AclRule = RULE) -> AclPlan:
    """By MirrorMaker 2's rule alone."""
    return plan(source, target, partial(judge, rule=rule))


def acl(
    operation: str = "READ",
    permission: str = "ALLOW",
    name: str = "orders",
    *,
    principal: str = "User:anna",
    host: str = "*",
    resource: str = "TOPIC",
    pattern: str = "LITERAL",
) -> AclBinding:
    return AclBinding(name, principal, operation, permission, host, resource, pattern)


class TestJudge:
    @pytest.mark.parametrize(
        "operation", ["READ", "DESCRIBE", "ALTER", "CREATE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"]
    )
    @pytest.mark.parametrize("permission", ["ALLOW", "DENY"])
    def test_mm2_118_acl_other_than_write_is_copied_under_the_remote_topic(
        self, operation: str, permission: str
    ) -> None:
        assert judge(acl(operation, permission), RULE) == acl(operation, permission, name="A.orders")

    @pytest.mark.parametrize(
        ("binding", "verdict"),
        [
            (acl("WRITE"), LeftOutReason.WRITE),
            (acl("WRITE", "DENY"), acl("WRITE", "DENY", name="A.orders")),
            (acl("ALL"), acl("READ", name="A.orders")),
            (acl("ALL", "DENY"), acl("ALL", "DENY", name="A.orders")),
            (acl(principal="User:CN=bob,O=Ältere"), acl(name="A.orders", principal="User:CN=bob,O=Ältere")),
            (acl(host="10.0.0.7"), acl(name="A.orders", host="10.0.0.7")),
            (acl(name="*"), acl(name="A.*")),  # the wildcard is a name like any other
            (acl(pattern="PREFIXED"), LeftOutReason.NOT_LITERAL),
            (acl(resource="GROUP"), LeftOutReason.NOT_A_TOPIC),
            (acl(resource="BROKER"), LeftOutReason.NOT_A_TOPIC),
            (acl(resource="TRANSACTIONAL_ID"), LeftOutReason.NOT_A_TOPIC),
            (acl(name="hidden-1"), LeftOutReason.NOT_MIRRORED),
        ],
    )
    def test_mm2_117_118_binding_is_copied_by_mm2s_rule(
        self, binding: AclBinding, verdict: AclBinding | LeftOutReason
    ) -> None:
        assert judge(binding, RULE) == verdict

    @pytest.mark.parametrize("where", ["operation", "permission", "resource", "pattern"])
    def test_a_word_the_client_cannot_name_is_never_recreated(self, where: str) -> None:
        words = {"operation": "READ", "permission": "ALLOW", "resource": "TOPIC", "pattern": "LITERAL"} | {
            where: UNKNOWN
        }
        assert judge(AclBinding(name="orders", principal="User:anna", **words), RULE) is LeftOutReason.UNKNOWN


class TestPlan:
    def test_acl_plan_has_only_what_the_target_lacks(self) -> None:
        plan = planned([acl("READ"), acl("DESCRIBE")], [acl("READ", name="A.orders")])
        assert plan.missing == (acl("DESCRIBE", name="A.orders"),)
        assert plan.present == 1

    def test_acl_plan_adds_two_bindings_that_become_one_once(self) -> None:
        assert planned([acl("READ"), acl("ALL")], []).missing == (acl("READ", name="A.orders"),)

    def test_acl_plan_ignores_other_bindings_of_the_target(self) -> None:
        plan = planned([], [acl("READ", name="A.orders"), acl("WRITE", name="local")])
        assert (plan.missing, plan.present) == ((), 0)

    def test_every_binding_left_out_has_its_reason(self) -> None:
        plan = planned([acl("WRITE"), acl(pattern="PREFIXED"), acl(UNKNOWN)], [])
        assert set(plan.left_out) == {
            LeftOutBinding(acl("WRITE"), LeftOutReason.WRITE),
            LeftOutBinding(acl(pattern="PREFIXED"), LeftOutReason.NOT_LITERAL),
            LeftOutBinding(acl(UNKNOWN), LeftOutReason.UNKNOWN),
        }
        assert plan.unknown == (acl(UNKNOWN),)

    def test_acl_plan_counts_skipped_acls_and_names_the_unexpected_first(self) -> None:
        hidden = [acl(name=f"hidden-{n:02}") for n in range(NAMED)]
        plan = planned([acl("WRITE"), *hidden, acl(UNKNOWN)], [])
        assert plan.left_out_counts == (("unknown-word", 1), ("write", 1), ("not-mirrored", NAMED))
        assert len(plan.left_out_names) == NAMED
        assert plan.left_out_names[:2] == ((str(acl(UNKNOWN)), "unknown-word"), (str(acl("WRITE")), "write"))

    def test_every_copy_knows_its_source(self) -> None:
        plan = planned([acl("READ"), acl("ALL", name="payments")], [])
        assert plan.expected == {acl("READ", name="A.orders"): "orders", acl("READ", name="A.payments"): "payments"}

    def test_acl_plan_under_identity_keeps_existing_acls(self) -> None:
        rule = AclRule(replicates=lambda topic: True, remote_topic=lambda topic: topic)
        assert planned([acl("READ")], [acl("READ")], rule).missing == ()


BINDINGS = st.builds(
    AclBinding,
    name=st.sampled_from(["orders", "payments", "hidden-1", "*"]),
    principal=st.sampled_from(["User:anna", "User:bob", "User:*"]),
    operation=st.sampled_from(["ALL", "READ", "WRITE", "DESCRIBE", "ALTER", UNKNOWN]),
    permission=st.sampled_from(["ALLOW", "DENY"]),
    host=st.sampled_from(["*", "10.0.0.7"]),
    resource=st.sampled_from(["TOPIC", "GROUP"]),
    pattern=st.sampled_from(["LITERAL", "PREFIXED"]),
)
SETS = st.frozensets(BINDINGS, max_size=30)


@given(SETS, SETS)
def test_acl_plan_after_its_execution_is_empty(source: frozenset[AclBinding], target: frozenset[AclBinding]) -> None:
    first = planned(source, target)
    second = planned(source, target | set(first.missing))
    assert second.missing == ()
    assert second.present == first.present + len(first.missing)


@given(SETS)
def test_acl_plan_never_grants_write(source: frozenset[AclBinding]) -> None:
    for binding in planned(source, []).missing:
        assert binding.permission == "DENY" or binding.operation not in ("WRITE", "ALL", UNKNOWN)
        assert (binding.resource, binding.pattern) == ("TOPIC", "LITERAL")
        assert binding.name.startswith("A.")
