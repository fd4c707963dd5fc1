"""Keep the control topics of a flow as its services need them: checked when a session begins, and each minute."""

from collections.abc import Collection, Iterable

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, RequestUnsupported
from lockstep_kafka.topics.control_topic_faults import (
    ControlTopicFault,
    ControlTopicUnfit,
    read_faults,
    repair_faults,
)
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_runtime.flow.context import FlowContext

CHECK_INTERVAL_S = 60.0
"""Seconds between two checks. A cleanup policy that deletes takes effect after minutes."""


class ControlTopicGuard:
    """Correct the configs of the control topics of one session.

    `report` writes what was corrected to the events topic, which has to be open by then.
    """

    def __init__(self, ctx: FlowContext, essential: Collection[str]) -> None:
        """Take the names of `essential` topics, without which no service of the flow works."""
        self._ctx = ctx
        self._essential = frozenset(essential)
        self._checked_at: dict[str, float] = {}
        self._troubles: dict[str, frozenset[str]] = {}
        self._refused: set[str] = set()
        """Configs that the cluster does not take, and that were logged."""
        self._corrected: list[tuple[str, ControlTopicFault]] = []

    async def check(self, admin: Admin, topics: Iterable[ControlTopic]) -> None:
        """Correct the configs of `topics` that readers cannot use as they are.

        Raises:
            ControlTopicUnfit: A config may not be corrected, and the flow would lose rows. The error has the command
                that
            corrects it.
            ClusterError: The cluster does not answer.
        """
        ctx = self._ctx
        self._checked_at[admin.alias] = ctx.clock.monotonic()
        present = set[str]()
        faults, unknown = await read_faults(admin, topics)
        for topic, trouble in unknown.items():
            if isinstance(trouble, RequestUnsupported):
                continue  # settings are not known on this cluster
            present.add(name := f"settings of {topic}")
            ctx.periodic.troubles.record_failure(name, trouble)
        refused = await repair_faults(admin, faults) if faults else {}
        self._corrected += [(admin.alias, fault) for fault in faults if fault not in refused]
        for fault, refusal in refused.items():
            if not fault.ends_work and _is_refused(refusal):
                self._log_refused(fault, refusal)
                continue
            command = fault.command(admin.bootstrap)
            unfit = ControlTopicUnfit(admin.alias, f"{fault.sentence}; {refusal}; to set it right: {command}")
            if fault.ends_work and fault.topic in self._essential:
                raise unfit
            name = f"{fault.setting} of {fault.topic}"
            present.add(name)
            ctx.periodic.troubles.record_failure(name, unfit)
        for name in self._troubles.get(admin.alias, frozenset()) - present:
            ctx.periodic.troubles.record_success(name)
        self._troubles[admin.alias] = frozenset(present)

    def _log_refused(self, fault: ControlTopicFault, refusal: ClusterError) -> None:
        """Log once that the cluster does not take a better config. The work goes on without it, so it is no trouble."""
        subject = f"{fault.setting} of {fault.topic}"
        if subject not in self._refused:
            self._refused.add(subject)
            self._ctx.log.warn("setting refused", f"{fault.sentence}; {refusal}", subject=fault.topic)

    async def check_if_due(self, admin: Admin, topics: Iterable[ControlTopic]) -> None:
        """Check if a minute has passed. Raises as `check`."""
        if self._ctx.clock.monotonic() - self._checked_at.get(admin.alias, float("-inf")) >= CHECK_INTERVAL_S:
            await self.check(admin, topics)

    async def report(self) -> None:
        """Write an event for each correction. Raises ClusterError if one is not written."""
        while self._corrected:
            alias, fault = self._corrected[0]
            await self._ctx.event(
                "ControlTopicCorrected",
                fault.topic,
                f"{fault.topic} on {alias}: {fault.setting} was {fault.actual}, and is {fault.needed} now",
                cluster=alias,
                setting=fault.setting,
                before=fault.actual,
                now=fault.needed,
            )
            del self._corrected[0]


def _is_refused(refusal: ClusterError) -> bool:
    """Return whether the config cannot be set on that cluster, with any rights."""
    return isinstance(refusal, RequestUnsupported) or Admin.may_be_refused_configs(refusal)
