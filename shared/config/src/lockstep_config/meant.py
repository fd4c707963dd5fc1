"""What an unknown key was probably meant to be: the nearest one that is known, at its level or at another. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import get_args

from lockstep_config.client_keys import CLIENT, CONNECTION, ClientKind
from lockstep_config.key_types import Scope
from lockstep_config.keys import KEYS

__all__ = ["KINDS", "LIKENESS", "LONGEST", "known_at", "meant", "nearest"]

KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
LIKENESS = 0.6
"""difflib's ratio from which on a known key is worth naming beside an unknown one."""
HERE = 0.15
"""So much less like it may a key of the same place be than one of another."""
LONGEST = 120
"""Characters of a key that is compared with others; what is longer is no slip of the pen."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, if any is like enough."""
    if len(name) > LONGEST:
        return None
    return next(iter(get_close_matches(name, list(candidates), 1, LIKENESS)), None)


@cache
def known_at(scope: Scope) -> tuple[str, ...]:
    """Every name that may stand there, without the alias or the flow in front."""
    names = [name for name, key in KEYS.items() if scope in key.scopes]
    match scope:
        case Scope.TOP:
            names += CONNECTION
        case Scope.CLUSTER:
            names += [*CONNECTION, *(f"{kind}.{name}" for kind in KINDS for name in (*CLIENT[kind], *CONNECTION))]
        case Scope.FLOW:
            names += [f"{side}.cluster.{name}" for side in ("source", "target") for name in CONNECTION]
            for kind in KINDS:
                prefixes = [f"{kind}.", f"source.{kind}.", f"target.{kind}."]
                prefixes += ["producer.override."] if kind == "producer" else []
                names += [prefix + name for prefix in prefixes for name in CLIENT[kind]]
    return tuple(names)


@cache
def meant(name: str, scope: Scope) -> str:
    """The end of a sentence about an unknown key at that level; `name` is without the alias or the flow."""
    bare = _without_prefix(name)
    if bare is not None:
        return _for_client(bare)
    found = {place: one for place in Scope if (one := nearest(name, known_at(place))) is not None}
    if not found:
        return "nothing like it is known: remove it"
    likeness = {place: SequenceMatcher(None, one, name).ratio() for place, one in found.items()}
    # Who mistypes a key rarely mistakes its place too.
    best = max(found, key=lambda place: likeness[place] + (HERE if place is scope else 0.0))
    return f"did you mean {best.value.replace('KEY', found[best]) if best is not scope else '{prefix}' + found[best]}?"


def _without_prefix(name: str) -> str | None:
    """A client's property that lacks `consumer.`, `producer.` or `admin.`, as its author wrote it."""
    bare = name.removeprefix("override.").removeprefix("source.").removeprefix("target.")
    return bare if any(bare in CLIENT[kind] for kind in KINDS) else None


def _for_client(name: str) -> str:
    kinds = [kind for kind in KINDS if name in CLIENT[kind]]
    ways = {
        "consumer": f"SOURCE.consumer.{name} for what is read",
        "producer": f"TARGET.producer.{name} or SOURCE->TARGET.producer.override.{name} for the mirrored records",
        "admin": f"ALIAS.admin.{name} for administration",
    }
    whose = " and ".join(f"{kind}s" for kind in kinds)
    return f"it is a property of {whose}: write {', or '.join(ways[kind] for kind in kinds)}"
