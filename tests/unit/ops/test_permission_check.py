"""Declared permissions that brokers say are missing."""

import pytest

from lockstep_config.credentials.permissions import PREFIXED, Grant
from lockstep_ops.permission_check import (
    HeldPermissions,
    MissingPermission,
    missing_permissions,
    named_groups,
    topics_for,
)


def grant(resource: str, name: str, operation: str, pattern: str = "literal") -> Grant:
    return Grant(resource, name, operation, "why", pattern)


READ_ALL = grant("topic", "*", "Read")
WRITE_COPIES = grant("topic", "A.", "Write", PREFIXED)
STATE = grant("topic", "state", "Write")
GROUP = grant("group", "g", "Read")
ALTER = grant("cluster", "kafka-cluster", "AlterConfigs")


def test_permissions_held_in_full_are_enough() -> None:
    held = HeldPermissions(
        frozenset({"ALTER_CONFIGS"}),
        {"orders": frozenset({"READ"}), "A.orders": frozenset({"WRITE"}), "state": frozenset({"WRITE"})},
        {"g": frozenset({"READ"})},
    )
    assert missing_permissions([READ_ALL, WRITE_COPIES, STATE, GROUP, ALTER], held, ["orders"]) == ()


def test_operations_that_brokers_omit_are_no_missing_permission() -> None:
    assert missing_permissions([READ_ALL, WRITE_COPIES, GROUP, ALTER], HeldPermissions(None), ["orders"]) == ()


def test_missing_permission_names_its_resources() -> None:
    held = HeldPermissions(
        topics={"orders": frozenset(), "bills": frozenset(), "A.orders": frozenset()}, groups={"g": frozenset()}
    )
    assert missing_permissions([READ_ALL, WRITE_COPIES, GROUP, ALTER], held, ["orders", "bills"]) == (
        MissingPermission(READ_ALL, ("bills", "orders")),
        MissingPermission(WRITE_COPIES, ("A.orders",)),
        MissingPermission(GROUP, ("g",)),
        MissingPermission(ALTER),
    )


@pytest.mark.parametrize(
    "grant", [STATE, READ_ALL, GROUP, grant("topic", "state", "Create"), grant("transactional-id", "t", "Write")]
)
def test_missing_permission_is_not_reported_for_an_unknown_resource(grant: Grant) -> None:
    assert missing_permissions([grant], HeldPermissions(), ["orders"]) == ()


def test_star_permission_covers_the_topics_of_the_flow_only() -> None:
    held = HeldPermissions(topics={"orders": frozenset({"READ"}), "secret": frozenset()})
    assert missing_permissions([READ_ALL], held, ["orders"]) == ()


def test_permission_check_selects_topics_to_describe() -> None:
    names = ["orders", "secret", "A.orders"]
    assert topics_for([READ_ALL, GROUP], names, ["orders"]) == {"orders"}
    hidden_or_missing = {"A.bills", "state"}
    wanted = topics_for([WRITE_COPIES, STATE], names, ["A.orders", "A.bills"])
    assert wanted == {"A.orders"} | hidden_or_missing
    assert named_groups([GROUP, grant("group", "*", "Describe"), STATE]) == {"g"}
