"""The requests that a cluster does not support, as its answers and its closed connections show (no I/O)."""

from enum import StrEnum


class UnsupportedCase(StrEnum):
    """The way in which a cluster shows that it does not support a request."""

    ABSENT = "absent"
    """ApiVersions names no version that we know."""
    REFUSED = "refused"
    """The answer is UNSUPPORTED_VERSION, or POLICY_VIOLATION."""
    CONNECTION_CLOSED = "connection-closed"
    """The broker closes the connection instead of an answer, twice, and answers other requests."""
    CONTRADICTS_LOG = "contradicts-log"
    """The answer contradicts the batches in the log."""


class UnsupportedRequests:
    """The requests that one cluster does not support, by the names of `kafka_apis.APIS`."""

    def __init__(self) -> None:
        self._cases: dict[str, UnsupportedCase] = {}
        self._unreported: list[tuple[str, UnsupportedCase]] = []

    def __contains__(self, api: str) -> bool:
        return api in self._cases

    def add_case(self, api: str, case: UnsupportedCase) -> None:
        """Note that the cluster does not support a request.

        The first case counts.
        """
        if api not in self._cases:
            self._cases[api] = case
            self._unreported.append((api, case))

    def take_cases(self) -> list[tuple[str, UnsupportedCase]]:
        """Return the requests that were noted since the last call, so that each is reported once."""
        cases, self._unreported = self._unreported, []
        return cases
