"""FindCoordinator in all its versions, for a group or a transactional id (no I/O)."""

from typing import Any

from lockstep_kafka.messages.message_versions import load_message

GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator."""

IN_LISTS = 4
"""The first version that asks for several coordinators at once."""


def coordinator_request(version: int, key: str, key_type: int) -> Any:
    """Return a request for the coordinator of one group or transactional id."""
    m = load_message("find_coordinator", version, "request")
    if version < IN_LISTS:
        return m.FindCoordinatorRequest(key=key, key_type=key_type)
    return m.FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)


def read_coordinator(answer: Any) -> Any:
    """Return the part of the answer with `error_code`, `node_id`, `host` and `port`."""
    return answer.coordinators[0] if answer.__version__ >= IN_LISTS else answer
