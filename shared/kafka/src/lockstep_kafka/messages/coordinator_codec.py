"""Which broker coordinates a group or a transactional id, as each version of FindCoordinator has it (no I/O)."""

from typing import Any

from lockstep_kafka.messages.message_versions import message

GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Kinds of what is looked up."""

IN_LISTS = 4
"""The first version that asks for several at once."""


def coordinator_request(version: int, key: str, key_type: int) -> Any:
    """Return a request for the coordinator of one group or transactional id."""
    m = message("find_coordinator", version, "request")
    if version < IN_LISTS:
        return m.FindCoordinatorRequest(key=key, key_type=key_type)
    return m.FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)


def read_coordinator(answer: Any) -> Any:
    """Return what the answer says: `error_code`, `node_id`, `host` and `port`."""
    return answer.coordinators[0] if answer.__version__ >= IN_LISTS else answer
