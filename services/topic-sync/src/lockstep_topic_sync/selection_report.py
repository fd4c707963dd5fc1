"""The event for a selection that takes none of the existing topics."""

from collections.abc import Iterable

from lockstep_rules.selection_count import TOPIC_KEYS, count_topics
from lockstep_runtime.flow.context import FlowContext


class SelectionReport:
    """The report about the selection of one flow, in one term of its leader."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._selects_nothing = False

    async def on_listed(self, source: Iterable[str]) -> None:
        """Append an event if none of the source's topics is selected, once for as long as that is so."""
        ctx, settings = self._ctx, self._ctx.settings
        count = count_topics(source, settings.topics, settings.policy)
        if count.is_nothing and not self._selects_nothing:
            text = count.sentence("topics", ctx.source.alias, TOPIC_KEYS)
            await ctx.event("NoTopicSelected", str(ctx.flow), text, total=count.total, included=count.included)
        self._selects_nothing = count.is_nothing
