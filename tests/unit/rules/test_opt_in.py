"""Prefixed and group ACLs are copied by opt-in, if the copy grants the same (`docs/guides/acls.md`)."""

from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.acls.acl_plan import AclRule, LeftOutReason, PrefixCandidates, judge, judge_with
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_rules.renames import Rename
from lockstep_state.acl_binding import UNKNOWN, AclBinding
from lockstep_state.rows.state_rows import MirroredTopic

PERMISSIONS = ("ALLOW", "DENY")
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
    return AclBinding(name, "User:anna", operation, permission, resource="GROUP", pattern=pattern)


def verdict(
    binding: AclBinding,
    rule: AclRule = RENAMED,
    *,
    source: Iterable[str] = (),
    target: Iterable[str] = (),
    copies: Iterable[str] = (),
) -> AclBinding | LeftOutReason:
    owners = {copy: copy.removeprefix("A.") for copy in copies}
    candidates = PrefixCandidates.from_listings(source, target, owners, rule)
    return judge_with(binding, rule, candidates, lambda name: name.startswith("b"))


WIDE = LeftOutReason.TOO_WIDE


@pytest.mark.parametrize(
    ("binding", "rule", "source", "target", "copies", "copied"),
    [
        (prefixed(), RENAMED, ["orders-1", "orders-2", "hidden"], [], [], prefixed("A.orders-")),
        (prefixed(), KEPT, ["orders-1"], ["orders-1"], [], prefixed()),
        (prefixed("new-"), RENAMED, ["orders-1"], [], [], prefixed("A.new-")),  # no topic matches
        (prefixed("h"), RENAMED, ["hallo", "hidden-1"], [], [], WIDE),  # not mirrored
        (prefixed(), RENAMED, ["orders-1"], ["A.orders-own"], [], WIDE),
        (prefixed(), KEPT, ["orders-1"], ["orders-own"], [], WIDE),
        (prefixed(), KEPT, ["orders-1"], ["orders-1", "orders-0"], ["orders-0"], prefixed()),  # source is gone
        (prefixed("heart"), KEPT, ["heartbeats"], [], [], WIDE),  # a renamed topic
        (prefixed(operation="WRITE"), RENAMED, [], [], [], LeftOutReason.WRITE),
        (prefixed(operation="ALL"), RENAMED, [], [], [], prefixed("A.orders-")),
        (prefixed("orders-", "ALL", "DENY"), RENAMED, [], [], [], prefixed("A.orders-", "ALL", "DENY")),
        (prefixed(operation=UNKNOWN), RENAMED, [], [], [], LeftOutReason.UNKNOWN),
    ],
)
def test_prefixed_acl_is_copied_only_if_it_covers_copies_alone(
    binding: AclBinding,
    rule: AclRule,
    source: list[str],
    target: list[str],
    copies: list[str],
    copied: AclBinding | LeftOutReason,
) -> None:
    assert verdict(binding, rule, source=source, target=target, copies=copies) == copied


SHORTENING = IdentityReplicationPolicy("A", renames=(Rename("(.*)-v1", "$1"), Rename("pay-.", "eu.pay")))
SHORT = AclRule(lambda topic: True, lambda topic: SHORTENING.format_remote_topic("A", topic))


def test_prefix_that_a_rename_shortens_gives_no_access_to_other_copies() -> None:
    assert verdict(prefixed("t-v1"), SHORT, source=["t-v1"], target=["t"]) == prefixed("t")
    assert verdict(prefixed("t-v1"), SHORT, source=["t-v1", "top-secret"], target=["t", "top-secret"]) is WIDE


def test_readers_of_a_topic_that_is_left_out_get_no_access_to_the_copy_of_another() -> None:
    rows = [
        MirroredTopic(source_topic="pay-1", target_topic="eu.pay", phase="mirrored"),
        MirroredTopic(source_topic="pay-2", target_topic="", phase="left-out"),
    ]
    acls = [AclBinding(name, "User:anna", "READ", "ALLOW") for name in ("pay-1", "pay-2", "pay-3", "t", "u")]
    verdicts = [judge(acl, SHORT.with_renames(rows, left_out=["u"])) for acl in acls]
    assert [isinstance(verdict, AclBinding) for verdict in verdicts] == [True, False, False, True, False]


NAMES = st.text("ab", min_size=1, max_size=4)


@given(NAMES, st.sets(NAMES), st.sets(NAMES), st.sets(NAMES), st.booleans())
def test_a_copied_prefix_gives_access_to_copies_alone(
    prefix: str, source: set[str], target: set[str], mirrored: set[str], kept: bool
) -> None:
    rule = AclRule(mirrored.__contains__, (KEPT if kept else RENAMED).remote_topic)
    candidates = {name if kept else f"A.{name}" for name in target} | {
        rule.remote_topic(name) for name in source & mirrored
    }
    copied = verdict(prefixed(prefix), rule, source=source, target=candidates)
    assert isinstance(copied, AclBinding) or copied is LeftOutReason.TOO_WIDE
    opened = {topic for topic in candidates if topic.startswith(rule.remote_topic(prefix))}
    copies = {rule.remote_topic(name) for name in source & mirrored if name.startswith(prefix)}
    all_mirrored = all(name in mirrored for name in source if name.startswith(prefix))
    assert isinstance(copied, AclBinding) == (opened == copies and all_mirrored)


@pytest.mark.parametrize(
    ("binding", "copied"),
    [
        *((group("billing", *words), group("billing", *words)) for words in product(("READ", "DESCRIBE"), PERMISSIONS)),
        (group("billing", "ALL"), group("billing", "READ")),
        (group("billing", "ALL", "DENY"), group("billing", "ALL", "DENY")),
        *((group("billing", "DELETE", permission), LeftOutReason.GROUP_OPERATION) for permission in PERMISSIONS),
        (group("analytics"), LeftOutReason.GROUP_NOT_MIRRORED),
        (group("b", pattern="PREFIXED"), LeftOutReason.NOT_LITERAL),
        (group("*"), WIDE),
        (group(operation=UNKNOWN), LeftOutReason.UNKNOWN),
        (group(permission=UNKNOWN), LeftOutReason.UNKNOWN),
    ],
)
def test_group_acl_is_copied_for_reading_a_followed_group(
    binding: AclBinding, copied: AclBinding | LeftOutReason
) -> None:
    assert verdict(binding) == copied


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
