"""Which version of a request is spoken with a broker, and what a cluster lacks for its role."""

import pytest

from lockstep_protocol.kafka_apis import APIS, ApiAbsent, ClusterRole, missing_apis, negotiate
from lockstep_protocol.reason_catalogue import format_sentence

SOURCE, TARGET, TRANSACTIONS = ClusterRole
FETCH = APIS["fetch"]
EVERYTHING = {api.key: (api.oldest, api.newest) for api in APIS.values()}


@pytest.mark.parametrize(
    ("announced", "version"),
    [
        ((0, FETCH.newest + 5), FETCH.newest),
        ((0, 6), 6),
        ((FETCH.oldest, FETCH.oldest), FETCH.oldest),
        ((FETCH.newest, FETCH.newest + 1), FETCH.newest),
        ((0, FETCH.oldest - 1), ApiAbsent("fetch", (0, FETCH.oldest - 1))),
        ((FETCH.newest + 1, 99), ApiAbsent("fetch", (FETCH.newest + 1, 99))),
        (None, ApiAbsent("fetch", None)),
    ],
)
def test_version_is_the_newest_in_common_or_absent(announced: tuple[int, int] | None, version: int | ApiAbsent) -> None:
    assert negotiate("fetch", {} if announced is None else {FETCH.key: announced}) == version


def test_version_below_what_would_do_is_absent() -> None:
    announced = {APIS["list_offsets"].key: (0, 1)}
    assert negotiate("list_offsets", announced) == 1
    assert negotiate("list_offsets", announced, oldest=2) == ApiAbsent("list_offsets", (0, 1))


@pytest.mark.parametrize(
    ("lacking", "roles"),
    [
        ("produce", {TARGET, TRANSACTIONS}),
        ("init_producer_id", {TARGET, TRANSACTIONS}),
        ("find_coordinator", {TRANSACTIONS}),
        ("add_partitions_to_txn", {TRANSACTIONS}),
        ("end_txn", {TRANSACTIONS}),
        ("describe_producers", {TARGET}),
        ("offset_for_leader_epoch", set()),
        ("fetch", {SOURCE, TARGET, TRANSACTIONS}),
        ("list_offsets", {SOURCE, TARGET, TRANSACTIONS}),
        ("metadata", {SOURCE, TARGET, TRANSACTIONS}),
    ],
)
def test_request_is_missed_by_the_roles_that_need_it(lacking: str, roles: set[ClusterRole]) -> None:
    announced = {key: versions for key, versions in EVERYTHING.items() if key != APIS[lacking].key}
    assert {role for role in ClusterRole if missing_apis([role], announced)} == roles
    assert missing_apis(roles, announced) == ((ApiAbsent(lacking, None),) if roles else ())
    assert missing_apis(ClusterRole, EVERYTHING) == ()


def test_absence_is_said_with_the_request_and_both_ranges() -> None:
    reason = ApiAbsent("produce", (0, 2)).to_reason("B", "b:9092")
    assert format_sentence(reason) == (
        "broker b:9092 of cluster B knows the request produce in versions 0 to 2, and this release in versions 3 to 13"
    )
    reason = ApiAbsent("describe_producers", None).to_reason("B", "b:9092")
    assert reason.code == "request-unknown"
    assert "does not know the request describe_producers" in format_sentence(reason)
