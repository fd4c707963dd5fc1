"""Prefixes and groups are copied where asked for, and only where the copy says the same (`docs/guides/acls.md`)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.acls.acl_plan import AclRule, LeftOutReason, PrefixCandidates, judge, judge_with
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_state.acl_binding import UNKNOWN, AclBinding

RENAMED = AclRule(
    replicates=lambda topic: not topic.startswith("hidden"),
    remote_topic=lambda topic: DefaultReplicationPolicy().format_remote_topic("A", topic),
)
KEPT = AclRule(
    replicates=RENAMED.replicates,
    remote_topic=lambda topic: IdentityReplicationPolicy("A").format_remote_topic("A", topic),
)


def prefixed(name: str = "orders-", operation: str = "READ", permission: str = "ALLOW") -> AclBinding:
    return AclBinding(name=name, principal="User:anna", operation=operation, permission=permission, pattern="PREFIXED")


def group(
    name: str = "billing", operation: str = "READ", permission: str = "ALLOW", pattern: str = "LITERAL"
) -> AclBinding:
    return AclBinding(
        name=name,
        principal="User:anna",
        operation=operation,
        permission=permission,
        resource="GROUP",
        pattern=pattern,
    )


def verdict(
    binding: AclBinding,
    rule: AclRule = RENAMED,
    *,
    source: Iterable[str] = (),
    target: Iterable[str] = (),
    copies: Iterable[str] = (),
) -> AclBinding | LeftOutReason:
    there = PrefixCandidates.from_listings(source, target, copies, rule)
    return judge_with(binding, rule, there, lambda name: name.startswith("b"))


class TestPrefixes:
    def test_a_prefix_becomes_that_of_the_remote_names(self) -> None:
        assert verdict(prefixed(), source=["orders-1", "orders-2", "hidden"]) == prefixed("A.orders-")

    def test_prefixed_acl_under_identity_is_copied_unchanged(self) -> None:
        assert verdict(prefixed(), KEPT, source=["orders-1"], target=["orders-1"]) == prefixed()

    def test_prefixed_acl_that_matches_no_topic_is_copied(self) -> None:
        assert verdict(prefixed("new-"), source=["orders-1"]) == prefixed("A.new-")

    def test_prefixed_acl_that_matches_an_unmirrored_topic_is_too_wide(self) -> None:
        assert verdict(prefixed("h"), source=["hallo", "hidden-1"]) is LeftOutReason.TOO_WIDE

    @pytest.mark.parametrize("rule", [RENAMED, KEPT])
    def test_prefixed_acl_that_matches_a_topic_of_the_target_is_too_wide(self, rule: AclRule) -> None:
        own = rule.remote_topic("orders-own")
        assert verdict(prefixed(), rule, source=["orders-1"], target=[own]) is LeftOutReason.TOO_WIDE

    def test_prefixed_acl_may_match_a_copy_whose_source_topic_is_gone(self) -> None:
        found = verdict(prefixed(), KEPT, source=["orders-1"], target=["orders-1", "orders-0"], copies=["orders-0"])
        assert found == prefixed()

    def test_prefixed_acl_with_a_renamed_topic_is_too_wide(self) -> None:
        assert verdict(prefixed("heart"), KEPT, source=["heartbeats"]) is LeftOutReason.TOO_WIDE

    def test_mirrormakers_rule_holds_else(self) -> None:
        assert verdict(prefixed(operation="WRITE")) is LeftOutReason.WRITE
        assert verdict(prefixed(operation="ALL")) == prefixed("A.orders-")
        assert verdict(prefixed(operation="ALL", permission="DENY")) == prefixed("A.orders-", "ALL", "DENY")
        assert verdict(prefixed(operation=UNKNOWN)) is LeftOutReason.UNKNOWN

    def test_without_the_key_it_is_left_out(self) -> None:
        assert judge_with(prefixed(), RENAMED, None, None) is LeftOutReason.NOT_LITERAL


NAMES = st.text("ab", min_size=1, max_size=4)


@given(NAMES, st.sets(NAMES), st.sets(NAMES), st.sets(NAMES), st.booleans())
def test_a_copied_prefix_gives_access_to_copies_alone(
    prefix: str, source: set[str], target: set[str], mirrored: set[str], kept: bool
) -> None:
    rule = AclRule(mirrored.__contains__, (KEPT if kept else RENAMED).remote_topic)
    there = {name if kept else f"A.{name}" for name in target} | {rule.remote_topic(name) for name in source & mirrored}
    found = verdict(prefixed(prefix), rule, source=source, target=there)
    assert isinstance(found, AclBinding) or found is LeftOutReason.TOO_WIDE
    opened = {topic for topic in there if topic.startswith(rule.remote_topic(prefix))}
    copies = {rule.remote_topic(name) for name in source & mirrored if name.startswith(prefix)}
    all_mirrored = all(name in mirrored for name in source if name.startswith(prefix))
    assert isinstance(found, AclBinding) == (opened == copies and all_mirrored)


class TestGroups:
    @pytest.mark.parametrize("operation", ["READ", "DESCRIBE"])
    @pytest.mark.parametrize("permission", ["ALLOW", "DENY"])
    def test_reading_is_copied(self, operation: str, permission: str) -> None:
        assert verdict(group("billing", operation, permission)) == group("billing", operation, permission)

    def test_allow_all_becomes_allow_read_and_deny_all_stays(self) -> None:
        assert verdict(group("billing", "ALL")) == group("billing", "READ")
        assert verdict(group("billing", "ALL", "DENY")) == group("billing", "ALL", "DENY")

    @pytest.mark.parametrize("permission", ["ALLOW", "DENY"])
    def test_group_acl_with_another_operation_is_refused(self, permission: str) -> None:
        assert verdict(group("billing", "DELETE", permission)) is LeftOutReason.GROUP_OPERATION

    def test_a_group_that_is_not_followed_is_left_out(self) -> None:
        assert verdict(group("analytics")) is LeftOutReason.GROUP_NOT_MIRRORED

    def test_prefixes_and_all_groups_are_left_out(self) -> None:
        assert verdict(group("b", pattern="PREFIXED")) is LeftOutReason.NOT_LITERAL
        assert verdict(group("*")) is LeftOutReason.TOO_WIDE

    def test_a_word_the_client_cannot_name_is_never_recreated(self) -> None:
        assert verdict(group(operation=UNKNOWN)) is LeftOutReason.UNKNOWN
        assert verdict(group(permission=UNKNOWN)) is LeftOutReason.UNKNOWN

    def test_without_the_key_they_are_left_out(self) -> None:
        assert judge_with(group(), RENAMED, None, None) is LeftOutReason.NOT_A_TOPIC


@given(
    st.builds(
        AclBinding,
        name=st.sampled_from(["orders", "hidden"]),
        principal=st.just("User:anna"),
        operation=st.sampled_from(["ALL", "READ", "WRITE", UNKNOWN]),
        permission=st.sampled_from(["ALLOW", "DENY"]),
        resource=st.sampled_from(["TOPIC", "GROUP"]),
        pattern=st.sampled_from(["LITERAL", "PREFIXED"]),
    )
)
def test_acl_without_opt_in_is_judged_as_in_mm2(binding: AclBinding) -> None:
    assert judge_with(binding, RENAMED, None, None) == judge(binding, RENAMED)
