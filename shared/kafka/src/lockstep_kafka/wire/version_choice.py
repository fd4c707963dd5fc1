"""Choose the version of a request (no I/O)."""

from collections.abc import Mapping

from lockstep_kafka.common.auth_errors import NOT_A_BROKER
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError
from lockstep_state.kafka.kafka_apis import APIS, NO_VERSIONS, versions_text
from lockstep_state.reasons.reason_catalogue import ReasonCode


def choose_version(api: str, oldest: int, versions: Mapping[int, tuple[int, int]], address: str, alias: str) -> int:
    """Return the newest version of an API that a broker and we know.

    Args:
        api: Its name in `kafka_apis.APIS`.
        oldest: None before it serves.
        versions: Those that the broker announces, by key.
        address: Of the broker, for errors.
        alias: Of its cluster, for errors.

    Raises:
        ProtocolUnfitError: There is none.
        BrokerUnreachable: It is a KRaft controller.
    """
    ours = APIS[api].since(oldest)
    theirs = versions.get(ours.key, NO_VERSIONS)
    version = ours.common_version(*theirs)
    if version is not None:
        return version
    if api == "metadata" and theirs[1] < 0:
        raise BrokerUnreachable(f"{address}: {NOT_A_BROKER}", alias)
    reason = ReasonCode.REQUEST_UNFIT.to_reason(
        cluster=alias,
        broker=address,
        request=ours.name,
        theirs=versions_text(*theirs),
        ours=versions_text(ours.oldest, ours.newest),
    )
    raise ProtocolUnfitError(alias, reason)
