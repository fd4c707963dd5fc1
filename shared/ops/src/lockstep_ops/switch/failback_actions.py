"""The two steps with which a failback begins: records that only one cluster has, and the way back."""

from collections.abc import Mapping, Sequence

from lockstep_config import FlowSettings
from lockstep_ops.switch.diverged_records import CopiesUnknown, DivergedRecords, find_diverged
from lockstep_ops.switch.followed_flow import FollowedFlow, OppositeFlow
from lockstep_ops.switch.source_ends import selected_topics
from lockstep_ops.switch.switch_clusters import StepFailed, SwitchClusters
from lockstep_ops.switch.switch_positions import (
    not_copied,
    partitions_by_count,
    records_by_partition,
)
from lockstep_ops.switch.switch_steps import switch_scopes
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.codecs.connect_offsets import OffsetChange, listing
from lockstep_state.commands.command_vocabulary import (
    OFFSETS_ALTER,
    PAUSE,
    RESUME,
    STOP,
    Connector,
    Scope,
    ScopeKind,
)
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch


class ForwardFlow:
    """The flow by which the applications had moved away: A->B, when they come back to A by B->A."""

    def __init__(
        self, forward: OppositeFlow, clusters: SwitchClusters, way_back: FollowedFlow, names: Sequence[str]
    ) -> None:
        """Take both flows. `names` are topics as on the forward flow's source; empty means all."""
        self._names = names
        self._forward = forward
        self.settings = forward.settings
        self._clusters = clusters
        self._way_back = way_back

    async def diverged(self) -> DivergedRecords:
        """Return the records that the forward flow's source has and its target has not.

        Records that the way back has copied to the source do not count.

        Raises:
            StepFailed: It is not known which records those are.
            ClusterError: A cluster does not answer, or refuses.
        """
        forward = await self._forward.follow()
        topics = selected_topics(forward, self._names)
        ends, starts = await self._clusters.source_ends(topics), await self._clusters.source_starts(topics)
        try:
            return await find_diverged(ends, forward.rows, self._way_back, starts)
        except CopiesUnknown as exc:
            raise StepFailed(exc.reason) from exc

    async def settle(self, row: Switch, progress: WorkProgress, within_s: float) -> str:
        """Do with diverged records what the operator said: copy them, or leave them out for good.

        Raises:
            StepFailed: The operator did not decide, or it cannot be done.
        """
        diverged = await self.diverged()
        if not diverged:
            if row.diverged == "copy":  # a command that ended half-way has resumed the flow
                await self.rest(row)
            return f"{self.settings.flow.source} has nothing that {self.settings.flow.target} lacks"
        text = diverged.text
        if row.diverged == "copy":
            progress.text = f"copying {text}"
            await self._copy(row, within_s)
            return f"copied to {self.settings.flow.target}: {text}"
        if row.diverged == "leave":
            await self._leave(diverged.counts)
            return f"left on {self.settings.flow.source} only: {text}"
        raise StepFailed(undecided(self.settings, diverged))

    async def _copy(self, row: Switch, within_s: float) -> None:
        forward = await self._forward.follow()
        topics = selected_topics(forward, self._names)
        ends, starts = await self._clusters.source_ends(topics), await self._clusters.source_starts(topics)
        await self._clusters.command_each(RESUME, switch_scopes(row))
        copied = await forward.wait_until(lambda: not not_copied(ends, starts, forward.rows), within_s)
        await self.rest(row)
        if not copied:
            remaining = records_by_partition(not_copied(ends, starts, forward.rows))
            raise StepFailed(f"not copied within {within_s:g} s: {remaining}")

    async def rest(self, row: Switch) -> str:
        """Pause or stop the flow or its topics again, as before the switch.

        Raises:
            StepFailed: A service refused or did not answer.
        """
        flow = self.settings.flow
        if row.opposite_paused:
            await self._clusters.command_each(PAUSE, [Scope(ScopeKind.TOPIC, name) for name in row.opposite_paused])
            return f"{', '.join(row.opposite_paused)} of {flow} paused again"
        if not row.topics and (rests := {"stopped": STOP, "paused": PAUSE}.get(row.opposite_was)):
            await self._clusters.command(rests)
        return f"{flow} is {row.opposite_was} again"

    async def _leave(self, diverged: Mapping[TopicPartition, int]) -> None:
        """Let the flow begin behind what its source has now. The flow has to be stopped."""
        ends = await self._clusters.source_ends(selected_topics(await self._forward.follow(), self._names))
        if gone := sorted(diverged.keys() - ends.keys()):
            topic, number = gone[0]
            raise StepFailed(f"{topic}-{number} is not mirrored by {self.settings.flow} any more")
        source = self.settings.aliases.source
        entries = listing(
            OffsetChange({"cluster": source, "partition": number, "topic": topic}, ends[topic, number] - 1)
            for topic, number in diverged
        )
        await self._clusters.command(OFFSETS_ALTER, Scope.for_connector(Connector.SOURCE), **entries)


def undecided(settings: FlowSettings, diverged: DivergedRecords) -> Reason:
    """Return the refusal about records that one cluster lacks: the operator has to decide."""
    source, target = settings.flow.source, settings.flow.target
    code = RefusalCode.DIVERGED_AT_MOST if diverged.at_most else RefusalCode.DIVERGED
    named = partitions_by_count(diverged.counts)
    return code.to_reason(source=source, target=target, count=diverged.total, partitions=named)
