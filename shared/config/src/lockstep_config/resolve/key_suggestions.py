"""What an unknown key was probably meant to be, and whether it is near a key that decides what is copied. Pure.

A proposal is made only where following it does what was meant. Either a table has it (`older_names`), or there is a
slip of the pen. A slip is a letter or two, a plural, the order or the marks between words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, CONNECTION_WITHOUT_EFFECT, ClientKind
from lockstep_config.keys.key_types import KeyLevel, Kind, Status
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.renamed_keys import RenamedKey, renamed_key

KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
LONGEST = 120
"""Characters of a key that is compared with others; what is longer is no slip of the pen."""
NOTHING_LIKE_IT = "nothing like it is known: remove it"

_DECIDING = frozenset({"isolation.level", "auto.offset.reset"})
"""Properties of clients that decide which records are copied."""
_NEVER_MEANT = frozenset({"include", "included", "disable", "disabled", "omit", "min"})
"""Words that are near a known one and say the opposite."""
_BETWEEN = re.compile(r"(?:[^A-Za-z0-9]+(?:to|TO|2)?|to|TO|2)[^A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class KeySuggestion:
    """The message on an unknown key. `keys`: what it was meant to be, as it is written in the same place. `matters`:
    that decides what is copied, where from, under which names, or how safely."""

    instead: str
    keys: tuple[str, ...] = ()
    matters: bool = False
    slip: bool = False
    """Of the pen; else `older_names` has it."""


@cache
def known_at(scope: KeyLevel) -> tuple[str, ...]:
    """Every name that is allowed there, without the alias or the flow in front."""
    names = [name for name, key in KEYS.items() if scope in key.scopes]
    match scope:
        case KeyLevel.TOP:
            names += CONNECTION
        case KeyLevel.CLUSTER:
            names += [*CONNECTION, *(f"{kind}.{name}" for kind in KINDS for name in (*CLIENT[kind], *CONNECTION))]
        case KeyLevel.FLOW:
            names += [f"{side}.cluster.{name}" for side in ("source", "target") for name in CONNECTION]
            for kind in KINDS:
                prefixes = [f"{kind}.", f"source.{kind}.", f"target.{kind}."]
                prefixes += ["producer.override."] if kind == "producer" else []
                names += [prefix + name for prefix in prefixes for name in CLIENT[kind]]
    return tuple(dict.fromkeys(names))


@cache
def meant(name: str, scope: KeyLevel, among: tuple[str, ...] | None = None) -> KeySuggestion:
    """About an unknown key at that level; `name` is without the alias or the flow. With `among` it is one of these
    names, behind a longer prefix. `{prefix}` in what is said stands for that prefix."""
    older = renamed_key(name)
    if older is not None and (among is None or set(older.keys) <= set(among)):
        return _from_renamed(older, scope, among)
    if among is not None:
        return _slip(near(name, among), scope) or KeySuggestion(NOTHING_LIKE_IT)
    if (bare := _without_prefix(name)) is not None:
        return KeySuggestion(_for_client(bare))
    if found := _slip(near(name, known_at(scope)), scope):
        return found
    for place in KeyLevel:
        if place is not scope and (there := _would_help(near(name, known_at(place)))):
            return KeySuggestion(f"did you mean {' or '.join(place.value.replace('KEY', one) for one in there)}?")
    return KeySuggestion(NOTHING_LIKE_IT)


def _from_renamed(older: RenamedKey, scope: KeyLevel, among: tuple[str, ...] | None) -> KeySuggestion:
    here = _prefix(older.keys, scope)
    if among is None and not set(older.keys) <= set(known_at(scope)):
        here = "ALIAS." if set(older.keys) <= CONNECTION else "SOURCE->TARGET."
    instead = " and ".join(here + key for key in older.keys)
    said = "; ".join(filter(None, (f"write {instead}" if instead else "", older.why)))
    return KeySuggestion(said, older.keys if here == "{prefix}" else (), older.matters)


def _slip(found: Sequence[str], scope: KeyLevel) -> KeySuggestion | None:
    if not found:
        return None
    matters = any(map(_matters, found))
    if not (helping := _would_help(found)):
        return KeySuggestion(f"{found[0]} would have no effect either: remove it", matters=matters, slip=True)
    here = _prefix(helping, scope)
    instead = f"did you mean {' or '.join(here + one for one in helping)}?"
    return KeySuggestion(instead, tuple(helping) if here == "{prefix}" else (), matters, slip=True)


def _prefix(keys: Iterable[str], scope: KeyLevel) -> str:
    """What goes before a proposal. `enabled` starts no flow at the top; `bootstrap.servers` is one cluster's."""
    if scope is KeyLevel.TOP:
        return {"enabled": "SOURCE->TARGET.", "bootstrap.servers": "ALIAS."}.get(next(iter(keys), ""), "{prefix}")
    return "{prefix}"


def _would_help(names: Iterable[str]) -> list[str]:
    """No message leads from one line that does nothing to another."""
    return [name for name in names if not _does_nothing(name)]


def _does_nothing(name: str) -> bool:
    if (key := KEYS.get(name)) is not None:
        return key.status is Status.WITHOUT_EFFECT
    kind, bare = _split_client(name)
    if bare in CONNECTION:
        return bare in CONNECTION_WITHOUT_EFFECT
    return kind is not None and bare in CLIENT[kind] and CLIENT[kind][bare].status is Status.WITHOUT_EFFECT


def _matters(name: str) -> bool:
    if (key := KEYS.get(name)) is not None:
        tuning = key.kind is Kind.INTEGER
        return name.startswith("lockstep.") or (key.status is not Status.WITHOUT_EFFECT and not tuning)
    kind, bare = _split_client(name)
    if bare in CONNECTION:
        return bare not in CONNECTION_WITHOUT_EFFECT
    refused = kind is not None and bare in CLIENT[kind] and CLIENT[kind][bare].status is Status.REFUSED
    return refused or bare in _DECIDING


def _split_client(name: str) -> tuple[ClientKind | None, str]:
    """The kind of client and its property; of a connection the property alone."""
    bare = name.removeprefix("source.").removeprefix("target.").removeprefix("cluster.")
    for kind in KINDS:
        if bare.startswith(f"{kind}."):
            return kind, bare.removeprefix(f"{kind}.").removeprefix("override.")
    return None, bare


def _without_prefix(name: str) -> str | None:
    """A client's property that lacks `consumer.`, `producer.` or `admin.`, as its author wrote it."""
    bare = name.removeprefix("override.").removeprefix("source.").removeprefix("target.")
    return bare if any(bare in CLIENT[kind] for kind in KINDS) else None


def _for_client(name: str) -> str:
    kinds = [kind for kind in KINDS if name in CLIENT[kind]]
    serving = [kind for kind in kinds if CLIENT[kind][name].status is not Status.WITHOUT_EFFECT]
    if not serving:
        return f"it is a property of {' and '.join(f'{kind}s' for kind in kinds)}, and {CLIENT[kinds[0]][name].why}"
    ways = {
        "consumer": f"SOURCE.consumer.{name} for what is read",
        "producer": f"TARGET.producer.{name} or SOURCE->TARGET.producer.override.{name} for the mirrored records",
        "admin": f"ALIAS.admin.{name} for administration",
    }
    whose = " and ".join(f"{kind}s" for kind in kinds)
    return f"it is a property of {whose}: write {', or '.join(ways[kind] for kind in serving)}"


def near(name: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Those of which `name` is a slip of the pen, all equally near; empty where it is none."""
    if len(name) > LONGEST:
        return ()
    index, raw = _index(candidates), _raw_words(name)
    words = tuple(map(_singular, raw))
    for form in ("".join(words), tuple(sorted(words))):
        if found := index.same.get(form):
            return found
    slips: dict[str, int] = {}
    for at, word in enumerate(words):
        for other, candidate in index.but_one.get((at, words[:at], words[at + 1 :]), ()):
            found_at = [_distance(raw[at], other), _distance(word, _singular(other))]
            for distance in (one for one in found_at if one is not None):
                slips[candidate] = min(distance, slips.get(candidate, distance))
    if slips:
        return tuple(candidate for candidate, distance in slips.items() if distance == min(slips.values()))
    found = index.cut_off.get(words, ())
    return found if len(found) == 1 else ()


@dataclass(frozen=True, slots=True)
class _Index:
    """Names by what a slip leaves of them. That is their letters, or their words in any order; all words but one; all
    but the last of at least three."""

    same: Mapping[str | tuple[str, ...], tuple[str, ...]]
    but_one: Mapping[tuple[int, tuple[str, ...], tuple[str, ...]], Sequence[tuple[str, str]]]
    cut_off: Mapping[tuple[str, ...], tuple[str, ...]]


@cache
def _index(candidates: tuple[str, ...]) -> _Index:
    same: dict[str | tuple[str, ...], tuple[str, ...]] = {}
    but_one: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[tuple[str, str]]] = defaultdict(list)
    cut_off: dict[tuple[str, ...], tuple[str, ...]] = {}
    for candidate in candidates:
        raw = _raw_words(candidate)
        words = tuple(map(_singular, raw))
        for form in ("".join(words), tuple(sorted(words))):
            same[form] = (*same.get(form, ()), candidate)
        for at, word in enumerate(raw):
            but_one[at, words[:at], words[at + 1 :]].append((word, candidate))
        if len(words) >= 3:
            cut_off[words[:-1]] = (*cut_off.get(words[:-1], ()), candidate)
    return _Index(same, dict(but_one), cut_off)


def _raw_words(name: str) -> tuple[str, ...]:
    """Without the marks between them and capitals."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", ".", name)
    return tuple(word for word in re.split(r"[^a-z0-9]+", apart.casefold()) if word)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _distance(word: str, other: str) -> int | None:
    """Letters that are missing, too much, wrong or exchanged with the next one; None: too many for a slip."""
    most = 1 if max(len(word), len(other)) <= 5 else 2
    if word in _NEVER_MEANT or max(len(word), len(other)) < 3 or abs(len(word) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, its in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == its:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1] if row[-1] <= most else None


def like_alias(alias: str, aliases: Iterable[str]) -> str | None:
    """The alias of which `alias` is a slip of the pen. `dc3` is none of `dc1`."""
    for one in aliases:
        if re.sub(r"[_-]", "", one.casefold()) == re.sub(r"[_-]", "", alias.casefold()):
            return one
    for one in aliases:
        same_digits = re.sub(r"[^0-9]", "", one) == re.sub(r"[^0-9]", "", alias)
        if min(len(one), len(alias)) > 3 and same_digits and _distance(alias.casefold(), one.casefold()) == 1:
            return one
    return None


def flow_meant(key: str, aliases: Sequence[str]) -> str | None:
    """`A-B.topics`, `A.B.topics`, `A→B.topics` as `A->B.topics`: a key of a flow whose arrow is another mark."""
    for source in sorted(aliases, key=len, reverse=True):
        between = _BETWEEN.match(key, len(source)) if key.startswith(source) else None
        if between is None or key.startswith("->", len(source)):
            continue
        target, _, rest = key[between.end() :].partition(".")
        if target in aliases and target != source and KeyLevel.FLOW in getattr(KEYS.get(rest), "scopes", ()):
            return f"{source}->{target}.{rest}"
    return None


def cluster_meant(key: str, aliases: Iterable[str]) -> str | None:
    """`cluster.A.bootstrap.servers` as `A.bootstrap.servers`: a word too much before the alias."""
    _, _, rest = key.partition(".")
    alias, _, name = rest.partition(".")
    return rest if alias in aliases and name in CONNECTION else None
