"""Consumer groups with their topics and their members on the target, as JSON values. Pure."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lockstep_console.views.listing import ListQuery, Page, page_of
from lockstep_ops.status.report import GroupLine
from lockstep_ops.status.report_json import line_as_json
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import GroupStatus

PLACED = ("exact", "behind")
"""The places from which the consumers of a group can go on."""


def group_page(lines: Sequence[GroupLine], query: ListQuery) -> Page[GroupLine]:
    """Return the groups that a query asks for. Those that cannot move are the worst."""
    return page_of(
        lines,
        query,
        name=lambda line: line.group,
        place=lambda line: (line.group,),
        lag=lambda line: (not line.is_ready, line.waiting, line.records),
        is_trouble=lambda line: not line.is_ready,
    )


def group_body(line: GroupLine, row: GroupStatus | None, members: Collection[str] | None) -> dict[str, Any]:
    """Return one group.

    Args:
        line: Its line in the report.
        row: Its row, with the places by topic; None: there is none.
        members: The client ids and hosts of its members on the target; None: unknown.
    """
    return {
        **line_as_json(line),
        "readiness": line.readiness,
        "topics": [] if row is None else group_topics(row),
        "members": None if members is None else list(members),
    }


def group_topics(row: GroupStatus) -> list[dict[str, Any]]:
    """Return each topic of a group on the target: how many partitions are exact, behind and waiting, and where.

    `records` are read again at most. A long list in the row has its end cut off: `more_behind` and `more_waiting` of
    the row count these.
    """
    partitions: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for topic, number, upstream, downstream in row.positions:
        partitions[topic][number] = {"place": "exact", "upstream": upstream, "downstream": downstream}
    for topic, number, records in row.behind:
        partitions[topic].setdefault(number, {}).update(place="behind", records=records)
    for topic, number, reason in row.waits:
        partitions[topic].setdefault(number, {}).update(place="waiting", why=format_sentence(reason))
    for topic, number, present, _, state in row.ahead:
        partitions[topic].setdefault(number, {}).update(place=state, on_target=present)
    return [_topic(topic, by_number) for topic, by_number in sorted(partitions.items())]


def _topic(topic: str, by_number: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    places = [each["place"] for each in by_number.values()]
    others = [place for place in places if place not in (*PLACED, "waiting")]
    return {
        "topic": topic,
        "place": next((place for place in (*others, "waiting", "behind", "exact") if place in places), "unknown"),
        "exact": places.count("exact"),
        "behind": places.count("behind"),
        "waiting": places.count("waiting"),
        "ahead": len(others),
        "records": sum(each.get("records", 0) for each in by_number.values()),
        "why": next((each["why"] for each in by_number.values() if each.get("why")), ""),
        "partitions": [{"partition": number, **each} for number, each in sorted(by_number.items())],
    }
