"""The flat keys under which a bench's figures are kept, ratios included, and what failed.

Pure: no I/O and no clock. Every ratio is "ours divided by theirs": for a rate above one is better, for CPU, latency and
starts below one.
"""

from collections.abc import Iterable, Mapping

from tools.bench.figures import (
    OURS,
    PEERS,
    QUANTILES,
    Copy,
    Latency,
    LatencyPart,
    Limit,
    Part,
    Start,
    StartPart,
    ThroughputPart,
    ratio,
)
from tools.bench.outcome import Failed, Scalar


def failures(parts: Iterable[Part]) -> list[str]:
    """One line for each thing that failed, in order; empty when every system did what was asked."""
    lines = []
    for part in parts:
        beside: dict[str, object] = {}
        if isinstance(part, ThroughputPart):
            beside |= {"limit": part.limit, part.own_name: part.own}
        elif isinstance(part, LatencyPart):
            beside["floor"] = part.floor
        lines += [
            f"{part.name}: {name} {what}"
            for name, what in (beside | dict(part.systems)).items()
            if isinstance(what, Failed)
        ]
    return lines


def flat(parts: Iterable[Part], environment: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Every figure under a flat key such as ``lz4.records_per_s.mm2_tuned``.

    A figure that was not measured has no key.
    """
    keys: dict[str, Scalar] = {f"environment.{name}": value for name, value in environment.items()}
    for part in parts:
        of_part: dict[str, Scalar] = dict(part.facts)
        for system, what in part.systems.items():
            if isinstance(what, Failed):
                of_part[f"failed.{system}"] = str(what)
            else:
                of_part |= _named(system, what.figures())
        of_part |= _beside(part)
        keys |= {f"{part.name}.{key}": value for key, value in of_part.items()}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in keys.items()}


def _named(system: str, figures: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {f"{figure}.{system}": value for figure, value in figures.items()}


def _beside(part: Part) -> dict[str, Scalar]:
    match part:
        case ThroughputPart(limit=limit, own=own, own_name=own_name):
            found: dict[str, Scalar] = {}
            if isinstance(limit, Failed):
                found["failed.limit"] = str(limit)
            elif limit is not None:
                found |= limit.figures()
            if isinstance(own, Failed):
                found[f"failed.{own_name}"] = str(own)
            elif own is not None:
                found |= _named(own_name, own.figures())
            return found | _rate_ratios(part)
        case LatencyPart(floor=Failed() as failed):
            return {"failed.floor": str(failed)} | _latency_ratios(part)
        case LatencyPart(floor=Latency() as floor):
            return _named("floor", floor.figures()) | _latency_ratios(part)
        case StartPart():
            return _start_ratios(part)
        case _:
            return {}


def _rate_ratios(part: ThroughputPart) -> dict[str, Scalar]:
    ours = part.systems.get(OURS)
    if not isinstance(ours, Copy):
        return {}
    found: dict[str, float | None] = {}
    for peer in PEERS:
        theirs = part.systems.get(peer)
        if isinstance(theirs, Copy):
            found[f"ratio_to_{peer}"] = ratio(ours.records_per_s, theirs.records_per_s)
            found[f"cpu_ratio_to_{peer}"] = ratio(ours.cpu_s_per_million, theirs.cpu_s_per_million)
            found[f"cpu_from_start_ratio_to_{peer}"] = ratio(
                ours.cpu_s_per_million_from_start, theirs.cpu_s_per_million_from_start
            )
    if isinstance(part.own, Copy):
        found[f"ratio_to_{part.own_name}"] = ratio(ours.records_per_s, part.own.records_per_s)
    if isinstance(part.limit, Limit):
        found["ratio_to_limit"] = ratio(ours.records_per_s, part.limit.records_per_s)
        found["ratio_to_both_at_once"] = ratio(ours.records_per_s, max(part.limit.both_at_once))
    return {key: value for key, value in found.items() if value is not None}


def _latency_ratios(part: LatencyPart) -> dict[str, Scalar]:
    ours = part.systems.get(OURS)
    if not isinstance(ours, Latency):
        return {}
    found: dict[str, Scalar] = {}
    for peer in PEERS:
        theirs = part.systems.get(peer)
        if isinstance(theirs, Latency):
            for name, quantile in QUANTILES.items():
                of_quantile = ratio(ours.at(quantile), theirs.at(quantile))
                if of_quantile is not None:
                    found[f"{name}_ratio_to_{peer}"] = of_quantile
    return found


def _start_ratios(part: StartPart) -> dict[str, Scalar]:
    ours = part.systems.get(OURS)
    if not isinstance(ours, Start):
        return {}
    found = {
        f"ratio_to_{peer}": ratio(ours.median_s, theirs.median_s)
        for peer in PEERS
        if isinstance(theirs := part.systems.get(peer), Start)
    }
    return {key: value for key, value in found.items() if value is not None}
