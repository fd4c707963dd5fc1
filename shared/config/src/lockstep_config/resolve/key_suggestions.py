"""Suggestions of what an unknown key was probably meant to be, and whether that key decides what is copied.

A key is suggested only if following the advice does what was meant: the table of old names has it, or `difflib` finds
one misspelt word. This module is pure.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, CONNECTION_WITHOUT_EFFECT, ClientKind
from lockstep_config.keys.key_types import KeyLevel, KeyStatus, ValueKind
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.renamed_keys import RenamedKey, find_renamed
from lockstep_config.keys.transform_keys import PREFIX, find_transform_key

KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
LONGEST = 120
"""The most characters of a key that is compared with others; a longer one is no misspelling."""
SIMILARITY, SIMILARITY_OF_THREE = 0.75, 0.66
"""difflib's ratio from which two words are alike: `levl` and `level`, but not `include` and `exclude`.

Words of three letters are alike if two letters are the same.
"""
ANY_WORD = "*"
"""The placeholder for the one word of a key that is misspelt or missing."""
NOTHING_LIKE_IT = "nothing like it is known: remove it"

_NEVER_MEANT = frozenset({"omit"})
"""Words that are like a known one and say the opposite."""
_DECIDING = frozenset({"isolation.level", "auto.offset.reset"})
"""Properties of clients that decide which records are copied."""
_BETWEEN = re.compile(r"(?:[^A-Za-z0-9]+(?:to|TO|2)?|to|TO|2)[^A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class KeySuggestion:
    """The advice on an unknown key.

    `keys` are what to write in the same place. `matters` says that they decide what is copied, where from, under
    which names, or how safely. `misspelt` is False if the table of old names has the key.
    """

    advice: str
    keys: tuple[str, ...] = ()
    matters: bool = False
    misspelt: bool = False


@cache
def known_names(level: KeyLevel) -> tuple[str, ...]:
    """Return every name that is allowed at that level, without the alias or the flow in front."""
    names = [name for name, key in KEYS.items() if level in key.levels]
    match level:
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
def suggest_key(name: str, level: KeyLevel, among: tuple[str, ...] | None = None) -> KeySuggestion:
    """Return the advice on an unknown key at that level.

    Args:
        name: The key without its alias or flow.
        level: Where the key is written.
        among: The names it may be, if it is the part behind a longer prefix.

    Returns:
        Advice in which `{prefix}` stands for what is in front of `name`.
    """
    renamed = find_renamed(name)
    if renamed is not None and (among is None or set(renamed.keys) <= set(among)):
        return _from_renamed(renamed, level, among)
    if among is not None:
        return _from_misspelt(find_misspelt(name, among), level) or KeySuggestion(NOTHING_LIKE_IT)
    if (bare := _without_prefix(name)) is not None:
        return KeySuggestion(_for_client(bare))
    if suggestion := _from_misspelt(find_misspelt(name, known_names(level)), level):
        return suggestion
    if key := _transform_key_like(name):
        return KeySuggestion(f"did you mean {{prefix}}{key}?", (key,), matters=True, misspelt=True)
    for another in KeyLevel:
        if another is not level and (keys := _with_effect(find_misspelt(name, known_names(another)))):
            return KeySuggestion(f"did you mean {' or '.join(another.value.replace('KEY', key) for key in keys)}?")
    return KeySuggestion(NOTHING_LIKE_IT)


def _transform_key_like(name: str) -> str:
    """Return the key of a transform whose word `transform` is misspelt; "": it is none."""
    own, _, rest = name.partition(".")
    word, _, key = rest.partition(".")
    is_like = own == "lockstep" and difflib.SequenceMatcher(None, word, "transform").ratio() >= SIMILARITY
    meant = f"{PREFIX}{key}"
    return meant if is_like and find_transform_key(meant) is not None else ""


def _from_renamed(renamed: RenamedKey, level: KeyLevel, among: tuple[str, ...] | None) -> KeySuggestion:
    prefix = _prefix(renamed.keys, level)
    if among is None and not set(renamed.keys) <= set(known_names(level)):
        prefix = "ALIAS." if set(renamed.keys) <= CONNECTION else "SOURCE->TARGET."
    names = " and ".join(prefix + key for key in renamed.keys)
    advice = "; ".join(filter(None, (f"write {names}" if names else "", renamed.note)))
    return KeySuggestion(advice, renamed.keys if prefix == "{prefix}" else (), renamed.matters)


def _from_misspelt(candidates: Sequence[str], level: KeyLevel) -> KeySuggestion | None:
    if not candidates:
        return None
    matters = any(map(_matters, candidates))
    if not (keys := _with_effect(candidates)):
        return KeySuggestion(f"{candidates[0]} would have no effect either: remove it", matters=matters, misspelt=True)
    prefix = _prefix(keys, level)
    advice = f"did you mean {' or '.join(prefix + key for key in keys)}?"
    return KeySuggestion(advice, tuple(keys) if prefix == "{prefix}" else (), matters, misspelt=True)


def _prefix(keys: Iterable[str], level: KeyLevel) -> str:
    """Return the text in front of a suggested key. `enabled` and `bootstrap.servers` do nothing at the top."""
    if level is KeyLevel.TOP:
        return {"enabled": "SOURCE->TARGET.", "bootstrap.servers": "ALIAS."}.get(next(iter(keys), ""), "{prefix}")
    return "{prefix}"


def _with_effect(names: Iterable[str]) -> list[str]:
    """Return the keys that have an effect, so that no message leads from one useless line to another."""
    return [name for name in names if not _does_nothing(name)]


def _does_nothing(name: str) -> bool:
    if (key := KEYS.get(name)) is not None:
        return key.status is KeyStatus.WITHOUT_EFFECT
    kind, bare = _split_client(name)
    if bare in CONNECTION:
        return bare in CONNECTION_WITHOUT_EFFECT
    return kind is not None and bare in CLIENT[kind] and CLIENT[kind][bare].status is KeyStatus.WITHOUT_EFFECT


def _matters(name: str) -> bool:
    if (key := KEYS.get(name)) is not None:
        tuning = key.kind is ValueKind.INTEGER
        return name.startswith("lockstep.") or (key.status is not KeyStatus.WITHOUT_EFFECT and not tuning)
    kind, bare = _split_client(name)
    if bare in CONNECTION:
        return bare not in CONNECTION_WITHOUT_EFFECT
    refused = kind is not None and bare in CLIENT[kind] and CLIENT[kind][bare].status is KeyStatus.REFUSED
    return refused or bare in _DECIDING


def _split_client(name: str) -> tuple[ClientKind | None, str]:
    """Split a key into the kind of client and its property. A connection's key has no kind."""
    bare = name.removeprefix("source.").removeprefix("target.").removeprefix("cluster.")
    for kind in KINDS:
        if bare.startswith(f"{kind}."):
            return kind, bare.removeprefix(f"{kind}.").removeprefix("override.")
    return None, bare


def _without_prefix(name: str) -> str | None:
    """Return the client's property if `name` is one that lacks `consumer.`, `producer.` or `admin.`, or None."""
    bare = name.removeprefix("override.").removeprefix("source.").removeprefix("target.")
    return bare if any(bare in CLIENT[kind] for kind in KINDS) else None


def _for_client(name: str) -> str:
    kinds = [kind for kind in KINDS if name in CLIENT[kind]]
    serving = [kind for kind in kinds if CLIENT[kind][name].status is not KeyStatus.WITHOUT_EFFECT]
    if not serving:
        return f"it is a property of {' and '.join(f'{kind}s' for kind in kinds)}, and {CLIENT[kinds[0]][name].reason}"
    ways = {
        "consumer": f"SOURCE.consumer.{name} for what is read",
        "producer": f"TARGET.producer.{name} or SOURCE->TARGET.producer.override.{name} for the mirrored records",
        "admin": f"ALIAS.admin.{name} for administration",
    }
    clients = " and ".join(f"{kind}s" for kind in kinds)
    return f"it is a property of {clients}: write {', or '.join(ways[kind] for kind in serving)}"


def find_misspelt(name: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the candidates that `name` is a misspelling of, all equally near.

    Marks between words, their order, capitals and plurals do not count. Besides, one word may be misspelt, or the last
    one may be missing.
    """
    if len(name) > LONGEST:
        return ()
    index, words = _index(candidates), _words(name)
    for form in ("".join(words), tuple(sorted(words))):
        if form in index:
            return tuple(index[form])
    corrected: dict[str, None] = {}
    for position, word in enumerate(words):
        in_its_place = index.get((*words[:position], ANY_WORD, *words[position + 1 :]), {})
        cutoff = SIMILARITY if len(word) > 3 else SIMILARITY_OF_THREE
        if len(word) > 1 and word not in _NEVER_MEANT:
            similar = difflib.get_close_matches(word, set(in_its_place.values()), 1, cutoff)
            corrected |= dict.fromkeys(key for key, candidate in in_its_place.items() if candidate in similar)
    continued = index.get((*words, ANY_WORD), {}) if len(words) > 1 else {}
    return tuple(corrected or (continued if len(continued) == 1 else ()))


@cache
def _index(names: tuple[str, ...]) -> Mapping[str | tuple[str, ...], Mapping[str, str]]:
    """Return the keys by their letters, by their words in any order, and by all of their words but one.

    Each key has the word that stands in the place of ANY_WORD.
    """
    index: dict[str | tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for name in names:
        words = _words(name)
        index["".join(words)][name] = index[tuple(sorted(words))][name] = ""
        for position, word in enumerate(words):
            index[*words[:position], ANY_WORD, *words[position + 1 :]][name] = word
    return dict(index)


def _words(name: str) -> tuple[str, ...]:
    """Split a key at marks and capitals into words, each without its plural."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", ".", name)
    return tuple(map(_singular, filter(None, re.split(r"[^a-z0-9]+", apart.casefold()))))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def find_misspelt_alias(alias: str, aliases: Iterable[str]) -> str | None:
    """Return the alias that `alias` is a misspelling of, or None. `dc3` is no misspelling of `dc1`."""
    plain = {re.sub(r"[_-]", "", listed.casefold()): listed for listed in reversed(tuple(aliases))}
    wanted = re.sub(r"[_-]", "", alias.casefold())
    digits = re.sub(r"[^0-9]", "", wanted)
    same_digits = [form for form in plain if len(form) > 3 and re.sub(r"[^0-9]", "", form) == digits]
    similar = difflib.get_close_matches(wanted, same_digits, 1, 0.75) if len(wanted) > 3 else []
    return plain.get(wanted) or next((plain[form] for form in similar), None)


def flow_meant(key: str, aliases: Sequence[str]) -> str | None:
    """Return `A->B.topics` for `A-B.topics`, `A.B.topics` and `A→B.topics`, whose arrow is another mark."""
    for source in sorted(aliases, key=len, reverse=True):
        between = _BETWEEN.match(key, len(source)) if key.startswith(source) else None
        if between is None or key.startswith("->", len(source)):
            continue
        target, _, rest = key[between.end() :].partition(".")
        if target in aliases and target != source and KeyLevel.FLOW in getattr(KEYS.get(rest), "levels", ()):
            return f"{source}->{target}.{rest}"
    return None


def cluster_meant(key: str, aliases: Iterable[str]) -> str | None:
    """Return `A.bootstrap.servers` for `cluster.A.bootstrap.servers`, which has a word too much before the alias."""
    _, _, rest = key.partition(".")
    alias, _, name = rest.partition(".")
    return rest if alias in aliases and name in CONNECTION else None
