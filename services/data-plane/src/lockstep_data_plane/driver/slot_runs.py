"""The specification of the next run of each slot."""

from lockstep_data_plane.driver.flow_origin import FlowOrigin
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.flow_transforms import FlowTransforms
from lockstep_runtime.flow.context import FlowContext


class SlotRuns:
    """The source of run names and specifications for the slots of one flow.

    Args:
        ctx: The flow.
        origin: The producer id of the flow and its settings in the chosen append mode.
        transforms: The transforms of the flow.
        log: Level and format of the slots' logs.
        beside_driver: Whether slots run on this machine.
    """

    def __init__(
        self,
        ctx: FlowContext,
        origin: FlowOrigin,
        transforms: FlowTransforms,
        log: tuple[str, str],
        *,
        beside_driver: bool,
    ) -> None:
        self._ctx = ctx
        self._origin = origin
        self._transforms = transforms
        self._log = log
        self._beside_driver = beside_driver
        self._count = 0
        self._begun: set[int] = set()
        """Slots that were started in the present term."""
        self._term, self._led_ms = -1, 0

    def lead(self) -> None:
        """Note the time at which the driver's term began. Slots of an earlier term end when they read its claim."""
        if self._ctx.term != self._term:
            self._term, self._led_ms = self._ctx.term, self._ctx.clock.wall_ms()
            self._begun.clear()

    def next(self, slot: int) -> SlotSpec:
        """Return the specification of the slot's next run, with a run name that was never used before."""
        ctx = self._ctx
        self._count += 1
        cut_off_ms = ctx.clock.wall_ms() if slot in self._begun else self._led_ms
        self._begun.add(slot)
        return SlotSpec(
            settings=self._origin.settings,
            slot=slot,
            run=f"{ctx.instance}-{ctx.term}-{self._count}",
            instance=ctx.instance,
            term=ctx.term,
            producer_id=self._origin.producer_id,
            source_cluster_id=self._origin.source_cluster_id,
            cut_off_ms=cut_off_ms if self._beside_driver else 0,
            log_level=self._log[0],
            log_format=self._log[1],
            beside_driver=self._beside_driver,
            transforms=self._transforms.planned,
        )
