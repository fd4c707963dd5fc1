"""Pages of long lists: filter, order, and a part of it. What is unknown comes before what is known to be worst."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lockstep_console.route import ConsoleRequest, Parameter
from lockstep_ops.status.report import COPYING, PartitionLine, TopicLine

L = TypeVar("L")

MOST_LINES = 1_000
"""Most lines of one answer."""

FEW_LINES = 20

SORTS = ("lag", "name")
ORDERS = ("asc", "desc")
ONLY = ("", "trouble")

LIST_PARAMETERS = (
    Parameter("sort", "The order of the lines", default="lag", choices=SORTS),
    Parameter("order", "Up or down; by default the worst first, and names from a to z", choices=ORDERS),
    Parameter("limit", "Most lines of the answer", "integer", default=FEW_LINES, least=0, most=MOST_LINES),
    Parameter("offset", "Lines that are passed over", "integer", default=0, least=0),
    Parameter("filter", "A part of the name, in any case"),
    Parameter("only", "Only lines in trouble", choices=ONLY),
)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which lines of a list are asked for, and in which order."""

    sort: str = "lag"
    order: str = "desc"
    limit: int = FEW_LINES
    offset: int = 0
    filter: str = ""
    only: str = ""

    @classmethod
    def of(cls, request: ConsoleRequest) -> "ListQuery":
        """Return the query of a request. Raises RequestRefused."""
        sort = request.text("sort", "lag", choices=SORTS)
        return cls(
            sort,
            request.text("order", "asc" if sort == "name" else "desc", choices=ORDERS),
            request.number("limit", FEW_LINES, most=MOST_LINES),
            request.number("offset", 0, most=10**9),
            request.text("filter").casefold(),
            request.text("only", choices=ONLY),
        )


@dataclass(frozen=True, slots=True)
class Page(Generic[L]):
    """A part of a list: how many lines there are, how many pass the filter, and those that are shown."""

    total: int
    matching: int
    lines: Sequence[L]

    def as_json(self, field: str, line_body: Callable[[L], Any]) -> dict[str, Any]:
        """Return the page as JSON values, with the lines in `field`."""
        return {
            "total": self.total,
            "matching": self.matching,
            field: [line_body(line) for line in self.lines],
        }


def page_of(
    lines: Sequence[L],
    query: ListQuery,
    *,
    name: Callable[[L], str],
    place: Callable[[L], tuple[Any, ...]],
    lag: Callable[[L], tuple[Any, ...]],
    is_trouble: Callable[[L], bool],
) -> Page[L]:
    """Return the lines of a list that a query asks for.

    Args:
        lines: The list.
        query: The query.
        name: Returns the name of a line, which the filter is compared with.
        place: Returns the place of a line in the order of names.
        lag: Returns how far behind a line is; the greatest is the worst.
        is_trouble: Returns whether a line is in trouble.
    """
    matching = [
        line
        for line in lines
        if (not query.filter or query.filter in name(line).casefold()) and (not query.only or is_trouble(line))
    ]
    matching.sort(key=place, reverse=query.sort == "name" and query.order == "desc")
    if query.sort == "lag":
        matching.sort(key=lag, reverse=query.order == "desc")
    return Page(len(lines), len(matching), matching[query.offset : query.offset + query.limit])


def partition_page(lines: Sequence[PartitionLine], query: ListQuery) -> Page[PartitionLine]:
    """Return the partitions that a query asks for."""
    return page_of(
        lines,
        query,
        name=lambda line: f"{line.topic}-{line.partition}",
        place=lambda line: (line.topic, line.partition),
        lag=lambda line: (*_lag(line.lag_ms, line.lag_records), line.state != COPYING),
        is_trouble=lambda line: bool(line.cause) or line.state != COPYING,
    )


def topic_page(lines: Sequence[TopicLine], query: ListQuery) -> Page[TopicLine]:
    """Return the topics that a query asks for."""
    return page_of(
        lines,
        query,
        name=lambda line: line.topic,
        place=lambda line: (line.topic,),
        lag=lambda line: (*_lag(line.lag_ms, line.lag_records), line.halted),
        is_trouble=lambda line: bool(line.cause) or line.halted > 0 or line.lag_records is None,
    )


def worst_partitions(lines: Sequence[PartitionLine], most: int) -> Sequence[PartitionLine]:
    """Return the partitions that are furthest behind, the worst first."""
    return partition_page(lines, ListQuery(limit=most)).lines


def _lag(lag_ms: int | None, lag_records: int | None) -> tuple[bool, int, int]:
    return lag_ms is None or lag_records is None, lag_ms or 0, lag_records or 0
