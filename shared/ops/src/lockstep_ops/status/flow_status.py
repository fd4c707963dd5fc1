"""The status of a flow: its report, or why nothing is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError, TopicMissing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.status.flow_report import FlowClients, read_report
from lockstep_ops.status.missing_state_topic import explain_missing_state_topic
from lockstep_ops.status.readiness import blockers_as_json, blockers_without_rows
from lockstep_ops.status.report import Report
from lockstep_ops.status.state_topic_rows import FollowedRows
from lockstep_state.names import Flow
from lockstep_state.reasons.switch_reason import Blocker


@dataclass(frozen=True, slots=True)
class UnknownStatus:
    """A flow of which nothing is known. `reason` is a sentence."""

    flow: Flow
    reason: str
    blockers: tuple[Blocker, ...]
    """The blockers of a switch, never none."""
    fails: bool = False
    """True if the flow cannot begin as it is."""

    @classmethod
    def because(cls, flow: Flow, reason: str, *, never_run: bool = False, fails: bool = False) -> "UnknownStatus":
        """Return the status of a flow of which nothing is known for this reason. It is the blocker of a switch too."""
        return cls(flow, reason, blockers_without_rows(flow, reason, never_run=never_run), fails)

    def as_json(self) -> dict[str, Any]:
        body = {"flow": str(self.flow), "fine": False, "unknown": self.reason, "switch_ready": False}
        return {**body, "switch_blockers": blockers_as_json(self.blockers)}


FlowStatus: TypeAlias = Report | UnknownStatus


async def read_status(
    settings: FlowSettings,
    timeout: float,
    followed: FollowedRows | None = None,
    *,
    clients: FlowClients | None = None,
    heard: Sequence[Record] | None = None,
) -> FlowStatus:
    """Return the report of a flow, or why its target gives none.

    Args:
        settings: The flow.
        timeout: The seconds within which a cluster has to answer, and for which nothing may come of the state topic.
        followed: The flow's rows, if the caller follows them. They are not read again.
        clients: Clients of its clusters, if the caller has some. They stay open.
        heard: The events in which services report what fails, if the caller follows them. They are not read again.

    Raises:
        NewerVersion: A newer release wrote a row.
    """
    try:
        return await read_report(settings, timeout, timeout, followed, clients=clients, heard=heard)
    except ClusterError as exc:
        reason, never_run, fails = str(exc), False, False
        if isinstance(exc, TopicMissing):
            without = await explain_missing_state_topic(settings, timeout)
            never_run, fails = without.never_run, bool(without.causes)
            reason = f"{exc}: {without}"
        return UnknownStatus.because(settings.flow, reason, never_run=never_run, fails=fails)
