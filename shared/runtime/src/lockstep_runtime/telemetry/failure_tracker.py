"""Present troubles: one log line when a trouble begins, one when it is over."""

import re
from collections import defaultdict
from collections.abc import Collection
from itertools import islice

from lockstep_config.keys.python_classes import ClassFailed
from lockstep_kafka.common.errors import (
    ClusterError,
    ClusterUnreachable,
    NotPermitted,
    ProtocolUnfit,
    RequestRefused,
    TopicDeleted,
)
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.reasons.reason import Detail, Reason

LOGGED_AT_ONCE = 10
"""Most troubles that have a line each at the same time: thousands of partitions may wait for one broker."""


MOST_IN_ROW, LONGEST_IN_ROW = 20, 400
"""Most troubles in a row, and most characters of each."""

_NO_CAUSE = re.compile(r" ?\(after [^)]*\)|\d+")
"""Parts of a sentence that do not distinguish causes: numbers, and how often librdkafka has seen the error."""

LOGGED_CAUSES = 10
"""Most causes of one outage that have a line each."""


class FailureTracker:
    """The present troubles of a process by name.

    Each is logged once when it begins and once when it is over. An unreachable cluster and a missing permission are
    logged once for all troubles, and each other cause of the same outage once. Of many other troubles only the first
    are logged.
    """

    def __init__(self, log: FlowLog, logged_elsewhere: Collection[str] = ()) -> None:
        """Take the log, and the clusters whose outages and unfit protocols another component logs."""
        self._log = log
        self._logged_elsewhere = frozenset(logged_elsewhere)
        self._now: dict[str, ClusterError | ClassFailed] = {}
        self._causes: defaultdict[str, set[str]] = defaultdict(set)
        """Causes of present outages that were logged, by cluster."""
        self._named: set[str] = set()
        """Troubles that were logged by name."""
        self._unnamed: set[str] = set()
        """Troubles beyond `LOGGED_AT_ONCE`."""
        self._unnamed_count = 0
        """The number of troubles that have been among the others since there were none."""

    @property
    def now(self) -> dict[str, str]:
        """Return present troubles by name as sentences, for `/status` and `/ready`."""
        return {name: str(trouble) for name, trouble in self._now.items()}

    @property
    def reasons(self) -> dict[str, Reason]:
        """Return present troubles by name as reasons, for programs."""
        return {name: _reason(trouble) for name, trouble in self._now.items()}

    @property
    def row_causes(self) -> tuple[tuple[str, Reason], ...]:
        """Return the first present troubles, cut to fit into a row."""
        return tuple((name, _reason(trouble)) for name, trouble in islice(self._now.items(), MOST_IN_ROW))

    def record_failure(self, name: str, trouble: ClusterError | ClassFailed) -> None:
        """Note that `name` (such as "topic refresh") fails because of `trouble`, and is tried again."""
        before = self._now.get(name)
        if isinstance(before, ClusterUnreachable) and not _is_answer(trouble) and _alias(trouble) == before.alias:
            return  # the cluster has not answered since
        if isinstance(trouble, ClusterUnreachable):
            if self._is_new_cause(trouble):
                self._log.warn(
                    "cluster unreachable", f"{trouble}; trying again", cluster=trouble.alias, reason=trouble.message
                )
        elif str(before) != str(trouble) and not self._is_repeated(name, trouble):
            self._log_failing(name, trouble)
        self._now[name] = trouble
        if (
            isinstance(trouble, NotPermitted | RequestRefused | ProtocolUnfit)
            and before is not None
            and _alias(before) == trouble.alias
        ):
            self._log_reached(before)  # the cluster has answered, even if it refuses

    def record_success(self, name: str, *, answered: bool = True) -> None:
        """Note that `name` works (again). Cheap when it never failed.

        `answered`: the cluster that it failed for has answered. Otherwise it only has not failed for a while, which
        proves nothing about a cluster that was away.
        """
        before = self._now.get(name)
        if before is None:
            return
        del self._now[name]
        self._log_recovered(name, quietly=isinstance(before, ClusterUnreachable) or self._is_repeated(name, before))
        if answered:
            self._log_reached(before)

    def forget(self, name: str) -> None:
        """Forget `name`, which is gone whether it works or not. Nothing is logged."""
        self._now.pop(name, None)
        self._named.discard(name)
        self._unnamed.discard(name)

    def forget_all(self) -> None:
        """Forget all troubles, because none of them is retried here any more.

        Nothing is logged, because it is not known whether they are over.
        """
        self._now.clear()
        self._causes.clear()
        self._named.clear()
        self._unnamed.clear()

    def _log_failing(self, name: str, trouble: ClusterError | ClassFailed) -> None:
        keys = {"cluster": trouble.alias} if isinstance(trouble, ClusterError) else {}
        if name in self._named or (name not in self._unnamed and len(self._named) < LOGGED_AT_ONCE):
            self._named.add(name)
            if isinstance(trouble, TopicDeleted):
                self._log.warn(f"{name} deleted", f"{trouble}; it is looked for again", **keys)
            else:
                self._log.warn(f"{name} failing", f"{trouble}; trying again", **keys)
            return
        if not self._unnamed:
            self._log.warn("others failing", f"{name} too; further failures are not logged; trying again", **keys)
            self._unnamed_count = 0
        self._unnamed_count += name not in self._unnamed
        self._unnamed.add(name)
        self._log.debug(f"{name} failing", f"{trouble}; trying again", **keys)

    def _log_recovered(self, name: str, *, quietly: bool) -> None:
        self._named.discard(name)
        if name in self._unnamed:
            self._unnamed.discard(name)
            self._log.debug(f"{name} recovered")
            if not self._unnamed:
                self._log.info("others recovered", f"all that were not named, {self._unnamed_count:,}")
        elif not quietly:
            self._log.info(f"{name} recovered")

    def _is_repeated(self, name: str, trouble: ClusterError | ClassFailed) -> bool:
        """Return whether another trouble has the same missing permission, or the same cluster that is too old.

        It was logged when that began, and its end is logged with the last one's.
        """
        others = (other for other_name, other in self._now.items() if other_name != name)
        if isinstance(trouble, ProtocolUnfit):
            is_logged = any(isinstance(other, ProtocolUnfit) and other.alias == trouble.alias for other in others)
            return trouble.alias in self._logged_elsewhere or is_logged
        if not isinstance(trouble, NotPermitted) or trouble.remedy is None:
            return False
        remedies = (other.remedy for other in others if isinstance(other, NotPermitted))
        return any(remedy is not None and remedy.command == trouble.remedy.command for remedy in remedies)

    def _is_new_cause(self, trouble: ClusterUnreachable) -> bool:
        """Return whether the outage begins, or has a cause that was not logged for it."""
        if trouble.alias in self._logged_elsewhere:
            return False
        if not self._away(trouble.alias):
            self._causes.pop(trouble.alias, None)
        causes, cause = self._causes[trouble.alias], _NO_CAUSE.sub("", trouble.message)
        is_new = cause not in causes and len(causes) < LOGGED_CAUSES
        if is_new:
            causes.add(cause)
        return is_new

    def _away(self, alias: str) -> bool:
        """Return whether the cluster is known to be away, or another component logs its outages."""
        away = (trouble.alias for trouble in self._now.values() if isinstance(trouble, ClusterUnreachable))
        return alias in self._logged_elsewhere or alias in away

    def _log_reached(self, before: ClusterError | ClassFailed | None) -> None:
        if isinstance(before, ClusterUnreachable) and not self._away(before.alias):
            self._log.info("cluster reachable again", before.alias, cluster=before.alias)


def _is_answer(trouble: ClusterError | ClassFailed) -> bool:
    """Return whether a broker has answered with this error. Errors of librdkafka itself have negative codes."""
    return not (isinstance(trouble, RequestRefused) and trouble.code < 0)


def _alias(trouble: ClusterError | ClassFailed) -> str:
    return trouble.alias if isinstance(trouble, ClusterError) else ""


def _reason(trouble: ClusterError | ClassFailed) -> Reason:
    """Return the reason, with details that fit into a row."""
    reason = trouble.to_reason()
    return Reason(reason.code, tuple((name, _cut(value)) for name, value in reason.details))


def _cut(value: Detail) -> Detail:
    return value[:LONGEST_IN_ROW] if isinstance(value, str) else value
