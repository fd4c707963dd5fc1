"""What the Python classes that a file names change about its lines. Pure, but for the import of those."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.keys.python_classes import PYTHON_KEYS, read_own_keys
from lockstep_config.resolve.key_suggestions import near
from lockstep_config.resolve.precedence import Layers
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True)
class OwnClasses:
    """What the Python classes of a file change about its lines. `stood_in`: the keys whose Java class one replaces;
    `keys`: the properties they take besides MM2's. Both by flow, None is the top of the file.
    """

    stood_in: Mapping[Flow | None, frozenset[str]] = field(default_factory=dict)
    keys: Mapping[Flow | None, frozenset[str]] = field(default_factory=dict)

    def stand_in(self, flow: Flow | None, key: str) -> bool:
        """At the top of the file: for some flow; what becomes of the others is said flow by flow (`filters`)."""
        return _has(self.stood_in, flow, key)

    def claim(self, flow: Flow | None, key: str) -> bool:
        return _has(self.keys, flow, key)

    def near(self, flow: Flow | None, key: str) -> tuple[str, ...]:
        """Return the properties of those classes that `key` is a misspelling of."""
        return near(key, tuple(sorted(self.keys.get(flow, frozenset()) | self.keys.get(None, frozenset()))))


def _has(keys: Mapping[Flow | None, frozenset[str]], flow: Flow | None, key: str) -> bool:
    where = keys.values() if flow is None else (keys.get(flow, frozenset()), keys.get(None, frozenset()))
    return any(key in some for some in where)


def own_classes(layers: Layers) -> OwnClasses:
    """Those that the lines of a file name. A class that cannot be had takes no keys."""
    stood_in: dict[Flow | None, frozenset[str]] = {}
    keys: dict[Flow | None, frozenset[str]] = {}
    for flow, lines in ((None, layers.top), *layers.flows.items()):
        named = {key: cell.entry.value for key, cell in lines.items() if key in PYTHON_KEYS}
        stood_in[flow] = frozenset(PYTHON_KEYS[key] for key in named)
        keys[flow] = frozenset(own for name in named.values() for own in read_own_keys(name))
    return OwnClasses(stood_in, keys)


NO_CLASSES = OwnClasses()
