"""The causes and unreadable records that slots report in their rows, merged over all slots of a flow."""

from collections import Counter

from lockstep_kafka.common.errors import ProtocolUnfit
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.names import state_topic
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import SlotStatus

UNFIT = (ReasonCode.REQUEST_UNFIT,)
"""Reasons that only slots notice. The driver's client speaks older versions of Kafka's protocol than a slot does."""


class SlotReports:
    """The reports of one flow's slots, handed to the log, the metrics and the process's report of troubles."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._passed_over: Counter[tuple[str, int]] = Counter()
        self._own_topic = state_topic(ctx.flow, ctx.settings.group_id)
        self._unfit: dict[int, dict[str, Reason]] = {}

    def update(self, row: SlotStatus) -> None:
        """Take over the status row of a slot's present run."""
        for topic, partition, count in row.unreadable:
            # Each reader begins at the beginning of the log: of several, the one that is farthest has counted all.
            added = count - self._passed_over[topic, partition]
            if added > 0 and topic != self._own_topic:  # that one the driver reads itself
                self._passed_over[topic, partition] = count
                self._ctx.unreadable.count(topic, partition, added)
        ended = row.phase == "released"
        causes = [] if ended else [cause for _, cause in row.causes if cause.code in UNFIT]
        before, self._unfit[row.slot] = self._clusters(), {str(cause.detail("cluster")): cause for cause in causes}
        now = self._clusters()
        for alias, reason in now.items():
            self._ctx.remote_troubles.record_failure(f"cluster {alias}", ProtocolUnfit(alias, reason))
        for alias in before.keys() - now.keys():
            self._ctx.remote_troubles.record_success(f"cluster {alias}")

    def reset(self) -> None:
        """Forget the last reports, because another replica leads and receives them."""
        self._unfit.clear()
        self._ctx.remote_troubles.forget_all()

    def _clusters(self) -> dict[str, Reason]:
        return {alias: reason for clusters in self._unfit.values() for alias, reason in clusters.items()}
