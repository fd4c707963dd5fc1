"""Says it when topics are there and the filters select none of them."""

from collections.abc import Iterable

from lockstep_rules.selection_count import TOPIC_KEYS, count_topics
from lockstep_runtime.flow.context import FlowContext


class SelectionReport:
    """Report the selection of one flow, in one term of its leader."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._selects_nothing = False

    async def on_listed(self, source: Iterable[str]) -> None:
        """Take the topics of the source. If none is selected, that is an event once, for as long as it is so."""
        ctx, settings = self._ctx, self._ctx.settings
        count = count_topics(source, settings.topics, settings.policy)
        if count.is_nothing and not self._selects_nothing:
            text = count.sentence("topics", ctx.source.alias, TOPIC_KEYS)
            await ctx.event("NoTopicSelected", str(ctx.flow), text, total=count.total, included=count.included)
        self._selects_nothing = count.is_nothing
