"""The work of each step of a switch. Each step may be done again after it was done, or half done."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from lockstep_kafka.common.errors import ClusterError, TopicMissing
from lockstep_ops.formatting import count_text
from lockstep_ops.switch.diverged_records import CopiesUnknown, DivergedRecords, find_diverged
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.source_ends import SourceEndsReader
from lockstep_ops.switch.switch_clusters import CHECK_AGAIN_S, StepFailed, SwitchClusters
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_options import Allowance, allows
from lockstep_ops.switch.switch_positions import (
    PartitionLoss,
    RecordsKnown,
    count_losses,
    diverged_records,
    known_ends,
    known_loss,
    known_source_ends,
    not_copied,
    records_by_partition,
    topic_rows,
    unknown_loss_text,
    unknown_losses,
)
from lockstep_ops.switch.switch_steps import switch_scopes
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.commands.command_vocabulary import PAUSE, RESUME, STOP, Connector, Scope, ScopeKind
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import (
    MirroredTopic,
    PartitionProgress,
    Switch,
    progress_by_partition,
)

ASK_SOURCE_EVERY_S = 5.0
"""The seconds after which a step that waits for records asks again whether the source answers."""

QUICK_S = 5.0
"""The copy is up to date if everything of one moment is copied within this many seconds."""


class StepActions:
    """The actions of the flow by which the applications move."""

    def __init__(self, log: SwitchLog, clusters: SwitchClusters, progress: WorkProgress, within_s: float) -> None:
        self.log = log
        self.clusters = clusters
        self._progress = progress
        self._within_s = within_s
        self._source = SourceEndsReader(log, clusters, progress)

    @property
    def topics(self) -> list[MirroredTopic]:
        """Return the mirrored topics that the switch is about."""
        return self._source.topics

    # -- records -------------------------------------------------------------------------------------------------------

    async def read_ends(self, row: Switch) -> tuple[str, int]:
        """Write down where the source's logs end.

        Without a cutoff they have to stand still, unless this is a drill.

        Returns:
            A text, and when the ends were asked for, in Unix milliseconds.
        """
        deadline, cutoff_ms = time.monotonic() + self._within_s, row.cutoff_ms
        if cutoff_ms:
            logs = await self._source.read_all(
                deadline, lambda partitions: self.clusters.ends_at(partitions, cutoff_ms)
            )
        elif row.drill:
            logs = await self._source.read_all(deadline)
        else:
            logs = await self._source.read_still(deadline)
        topics, ends, asked_ms = logs
        await self.log.append(*topic_rows(topics, row.id, ends, self.log.rows, {}))
        return f"{count_text(len(ends), 'partition')} in {count_text(len(topics), 'topic')}", asked_ms

    @property
    def _partitions(self) -> dict[TopicPartition, PartitionProgress]:
        return progress_by_partition(self.log.rows.values())

    async def drain(self, row: Switch) -> str:
        """Wait until everything before the written ends is on the target, and can be read there."""
        topics, ends = self.topics, known_ends(self.log.rows, row.id)
        starts = await self.clusters.source_starts(topics)
        remaining = not_copied(ends, starts, self.log.rows)
        await self._wait_copied(ends, starts, topics)
        await self._require_readable(topics)
        return f"{count_text(sum(remaining.values()), 'record')} were left" if remaining else "nothing was left"

    async def _wait_copied(
        self, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], topics: Sequence[MirroredTopic]
    ) -> None:
        names = {topic.source_topic for topic in topics}
        total, progress = sum(not_copied(ends, starts, self.log.rows).values()), self._progress
        progress.done, progress.total = 0, total

        def is_over() -> bool:
            for row in self._partitions.values():
                if (
                    row.phase == "halted"
                    and row.topic in names
                    and ends.get((row.topic, row.partition), 0) > row.upstream + 1
                ):
                    raise StepFailed(f"{row.topic}-{row.partition} is halted: {row.reason or row.case}")
            remaining = sum(not_copied(ends, starts, self.log.rows).values())
            progress.text, progress.done = f"{remaining:,} records behind{silence}", total - remaining
            return not remaining

        deadline, silence = time.monotonic() + self._within_s, ""
        while not (copied := await self.log.wait_until(is_over, min(ASK_SOURCE_EVERY_S, self._within_s))):
            if time.monotonic() > deadline:
                break
            error = await self.clusters.source_error()
            silence = "" if error is None else f", and {self.log.settings.flow.source} does not answer"
        progress.total = 0
        if not copied:
            missing = records_by_partition(not_copied(ends, starts, self.log.rows))
            raise StepFailed(f"not copied within {self._within_s:g} s: {missing}")

    async def _require_readable(self, topics: Sequence[MirroredTopic]) -> None:
        """Check that the target's logs have what the rows say is copied.

        Raises:
            StepFailed: A log ends before that.
        """
        ends, progress = await self.clusters.target_ends(topics), self._partitions
        for topic in topics:
            for number in range(topic.partitions):
                row, end = progress.get((topic.source_topic, number)), ends.get((topic.target_topic, number))
                if row is None or row.upstream < 0:
                    continue
                if end is None or end <= row.downstream:
                    end_text = "is not there" if end is None else f"ends at {end}"
                    raise StepFailed(
                        f"{topic.target_topic}-{number} {end_text} on the target, which had acknowledged offset "
                        f"{row.downstream}"
                    )

    async def catch_up(self) -> str:
        """Wait until the flow copies records as they come (`QUICK_S`)."""
        deadline = time.monotonic() + self._within_s
        copied = 0
        while True:
            began = time.monotonic()
            topics, ends, _ = await self._source.read_all(deadline)
            starts = await self.clusters.source_starts(topics)
            remaining = sum(not_copied(ends, starts, self.log.rows).values())
            await self._wait_copied(ends, starts, topics)
            copied += remaining
            if time.monotonic() - began <= QUICK_S:
                return f"{count_text(copied, 'record')} were copied"
            if time.monotonic() > deadline:
                raise StepFailed(f"the flow is not up to date after {self._within_s:g} s")

    async def settle(self, row: Switch) -> tuple[str, list[PartitionLoss], int]:
        """Stop the copy, and write down what the source was known to have and the target has not.

        Returns:
            A text, those losses, and the moment up to which it is known what the source had, in Unix milliseconds.
        """
        topics = self.topics
        if row.topics:
            await self._pause(topics)
        else:
            await self.clusters.command(STOP, Scope.for_connector(Connector.SOURCE))
            await self._wait_drained()
        records_known, losses = RecordsKnown.from_rows(self.log.rows, topics), known_loss(self.log.rows, topics)
        ends = known_source_ends(self.log.rows)
        target_ends = await self.clusters.target_ends(topics)
        await self.log.append(*topic_rows(topics, row.id, ends, self.log.rows, target_ends, losses, records_known))
        lost = sum(count_losses(losses).values())
        text = f"{count_text(lost, 'record')} lost" if lost else "no record is known to be lost"
        unknown = unknown_losses(losses)
        text += f". {records_known.sentence(self.log.settings.flow.source)}"
        return f"{text}, and {unknown_loss_text(unknown)}" if unknown else text, losses, records_known.least_ms

    def require_allowed(self, row: Switch, losses: Sequence[PartitionLoss]) -> None:
        """Check that no more is lost than the switch may lose.

        Raises:
            StepFailed: More is lost, or an unknown number that is not allowed.
        """
        counts, unknown = count_losses(losses), unknown_losses(losses)
        lost, source = sum(counts.values()), self.log.settings.flow.source
        if row.drill:  # no client moves, so nothing is lost
            return
        if lost > max(0, row.allowed_loss):
            raise StepFailed(
                f"{records_by_partition(counts)} were known on {source} and are not copied. "
                f"Say --continue --allow-data-loss {lost}, or --abort"
            )
        if unknown and not allows(row, Allowance.UNKNOWN_LOSS):
            named, option = unknown_loss_text(unknown), Allowance.UNKNOWN_LOSS.option
            raise StepFailed(f"{named}. Say --continue {option}, or --abort")

    # -- the flow ------------------------------------------------------------------------------------------------------

    async def stop(self, row: Switch, *, source: bool, opposite: OppositeFlow | None) -> tuple[str, int, bool]:
        """Stop the flow, or pause its topics, wait until it has drained, and write down where each partition is.

        Args:
            row: The switch.
            source: Whether the source answers.
            opposite: The flow in the other direction, if the file has one. Its copies on the source are not late
                records.

        Returns:
            A text, how many records came to the source behind its written end and are not copied, and whether that
            number is not known because the source does not answer.

        Raises:
            StepFailed: That number is not known, and the switch may not go on without it.
            ClusterError: A cluster does not answer, or refuses.
        """
        topics = self.topics
        if row.topics:
            await self._pause(topics)
        else:
            await self.clusters.command(STOP)
            await self._wait_drained()
        target_ends = await self.clusters.target_ends(topics)
        ends, unknown = known_ends(self.log.rows, row.id), NO_REASON
        late = DivergedRecords({})
        if source and not row.drill and not row.cutoff_ms:
            try:
                late, unknown = await self._late_records(row, topics, ends, opposite)
            except (StepFailed, ClusterError) as exc:
                if not allows(row, Allowance.SOURCE_GONE):
                    raise
                unknown = RefusalCode.LATE_UNKNOWN.to_reason(source=self.log.settings.flow.source, cause=str(exc))
        records_known = None if source else RecordsKnown.from_rows(self.log.rows, topics)
        losses = [] if source else known_loss(self.log.rows, topics)
        await self.log.append(*topic_rows(topics, row.id, ends, self.log.rows, target_ends, losses, records_known))
        text = count_text(len(topics), "topic") + " paused" if row.topics else "stopped"
        if late:
            text += f". After the fence came {late.text}, which are not copied"
        text = f"{text}. {format_sentence(unknown)}" if unknown else text
        return text, late.total, unknown.code == RefusalCode.LATE_UNKNOWN

    async def _late_records(
        self,
        row: Switch,
        topics: Sequence[MirroredTopic],
        ends: Mapping[TopicPartition, int],
        opposite: OppositeFlow | None,
    ) -> tuple[DivergedRecords, Reason]:
        """Return the records behind the written ends of the source that are not copied.

        The reason names the partitions of which that is not known, if the switch may go on without being ready.

        Raises:
            StepFailed: It is not known, and the switch may not go on.
            ClusterError: The source does not answer, or refuses.
        """
        if (error := await self.clusters.source_error()) is not None:  # sooner than the request for the ends gives up
            raise error
        current_ends = await self.clusters.source_ends(topics)
        late = DivergedRecords(not_copied(current_ends, ends, self.log.rows))
        if not late or opposite is None or not self.log.settings.keeps_names:
            return late, NO_REASON
        late, unknown = await self._without_copies(current_ends, opposite)
        if unknown and not allows(row, Allowance.NOT_READY):
            option = Allowance.NOT_READY.option
            raise StepFailed(f"{format_sentence(unknown)}, by --continue, or --continue {option}")
        return late, unknown

    async def _without_copies(
        self, ends: Mapping[TopicPartition, int], opposite: OppositeFlow
    ) -> tuple[DivergedRecords, Reason]:
        """Return the records of the source that the target lacks, without copies by the opposite flow.

        The reason names the partitions of which that is not known.
        """
        try:
            return await find_diverged(ends, self.log.rows, await opposite.follow()), NO_REASON
        except TopicMissing:  # the opposite flow has never run
            return DivergedRecords(diverged_records(ends, self.log.rows, {})), NO_REASON
        except CopiesUnknown as exc:
            return exc.counted, exc.reason

    async def _pause(self, topics: Sequence[MirroredTopic]) -> None:
        """Pause the topics, and wait until nothing of them moves."""
        names = {topic.source_topic for topic in topics}
        await self.clusters.command_each(PAUSE, [Scope(ScopeKind.TOPIC, name) for name in sorted(names)])

        def are_paused() -> bool:
            selected = (row for row in self._partitions.values() if row.topic in names)
            return all(row.phase in ("paused", "stopped", "halted") for row in selected)

        if not await self.log.wait_until(are_paused, self._within_s):
            raise StepFailed(f"the topics did not pause within {self._within_s:g} s")

    async def _wait_drained(self) -> None:
        deadline = time.monotonic() + self._within_s
        while cause := await self.clusters.still_copies(self.log.rows):
            if time.monotonic() > deadline:
                raise StepFailed(f"the flow did not drain within {self._within_s:g} s: {format_sentence(cause)}")
            self._progress.text = format_sentence(cause)
            await asyncio.sleep(CHECK_AGAIN_S)

    async def resume(self, row: Switch) -> str:
        """Let the flow, or its topics, go on."""
        await self.clusters.command_each(RESUME, switch_scopes(row))
        return f"{self.log.settings.flow} runs again"
