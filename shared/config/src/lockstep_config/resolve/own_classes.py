"""The changes that the Python classes of a file make to its lines. This module is pure, but for their import."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.keys.python_classes import PYTHON_KEYS, read_own_keys
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.key_suggestions import find_misspelt
from lockstep_config.resolve.precedence import Layers
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True)
class OwnClasses:
    """The keys that the Python classes of a file replace or take.

    `replaced` are the keys whose Java class a Python class replaces, `keys` the properties that the classes take
    besides MM2's. Both are by flow; None is the top of the file.
    """

    replaced: Mapping[Flow | None, frozenset[str]] = field(default_factory=dict)
    keys: Mapping[Flow | None, frozenset[str]] = field(default_factory=dict)

    def replaces_java_class(self, flow: Flow | None, key: str) -> bool:
        """Return whether a Python class replaces the Java class of this key.

        At the top of the file it is enough that some flow has one. The other flows are judged one by one (`filters`).
        """
        return _has(self.replaced, flow, key)

    def accepts_key(self, flow: Flow | None, key: str) -> bool:
        return _has(self.keys, flow, key)

    def find_similar_keys(self, flow: Flow | None, key: str) -> tuple[str, ...]:
        """Return the properties of those classes that `key` is a misspelling of."""
        return find_misspelt(key, tuple(sorted(self.keys.get(flow, frozenset()) | self.keys.get(None, frozenset()))))


def _has(keys: Mapping[Flow | None, frozenset[str]], flow: Flow | None, key: str) -> bool:
    if flow is None:
        return any(key in flow_keys for flow_keys in keys.values())
    return key in keys.get(flow, ()) or key in keys.get(None, ())


def own_classes(layers: Layers) -> OwnClasses:
    """Return the changes by the Python classes that a file names. A class that cannot be imported takes no keys."""
    replaced: dict[Flow | None, frozenset[str]] = {}
    keys: dict[Flow | None, frozenset[str]] = {}
    for flow, lines in ((None, layers.top), *layers.flows.items()):
        named = {key: cell.entry.value for key, cell in lines.items() if key in PYTHON_KEYS}
        replaced[flow] = frozenset(PYTHON_KEYS[key] for key in named)
        of_classes = frozenset(own for name in named.values() for own in read_own_keys(name))
        keys[flow] = of_classes | _transform_keys(layers, lines)
    return OwnClasses(replaced, keys)


def _transform_keys(layers: Layers, lines: Mapping[str, Cell]) -> frozenset[str]:
    """Return the keys of the transforms and predicates that some line names: each of them takes keys of its own."""
    every = (layers.top, *layers.flows.values())
    named = ((kind, cells[kind]) for kind in ("transforms", "predicates") for cells in every if kind in cells)
    prefixes = tuple(f"{kind}.{name}." for kind, cell in named for name in cell.value or ())
    return frozenset(key for key in lines if key.startswith(prefixes)) if prefixes else frozenset()


NO_CLASSES = OwnClasses()
