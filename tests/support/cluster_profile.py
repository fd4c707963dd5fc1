"""What a cluster that is no Apache Kafka of today lacks, refuses and does in another way, as data for the proxy.

Requests are named as kio names them: `fetch`, `incremental_alter_configs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map

API_KEYS: Mapping[str, int] = {name: key for key, name in api_key_map.items()}
ANY_VERSION = (0, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRules:
    """Which configs of a topic a cluster takes, and how it refuses the others."""

    settable: frozenset[str] | None = None
    """None: all of them."""
    refused: frozenset[str] = frozenset()
    smallest: Mapping[str, int] = field(default_factory=dict)
    largest: Mapping[str, int] = field(default_factory=dict)
    only_at_creation: frozenset[str] = frozenset()
    code: ErrorCode = ErrorCode.policy_violation

    def refusal(self, configs: Mapping[str, str | None], *, creates: bool) -> str | None:
        """Return the sentence by which the first config that is not taken is refused. None: all are taken."""
        for name, value in configs.items():
            if (self.settable is not None and name not in self.settable) or name in self.refused:
                return f"Config property '{name}' cannot be set."
            if name in self.only_at_creation and not creates:
                return f"Config property '{name}' cannot be changed."
            number = int(value) if value is not None and value.lstrip("-").isdigit() else None
            if number is None:
                continue
            for bound, word, wrong in (
                (self.smallest.get(name, number), "lower than the minimum", number < self.smallest.get(name, number)),
                (self.largest.get(name, number), "higher than the maximum", number > self.largest.get(name, number)),
            ):
                if wrong:
                    return f"Config property '{name}' with value '{value}' is {word} allowed value of {bound}."
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationRule:
    """The one replication factor that a cluster takes beside -1, its own default, and how it refuses others.

    What stands behind the proxy has one broker: whatever is taken is asked of it as -1.
    """

    factor: int
    code: ErrorCode = ErrorCode.policy_violation
    sentence: str = "Topic replication factor must be {factor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProfile:
    """How a cluster answers. Without any field it is the broker behind the proxy, unchanged."""

    versions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Oldest and newest version of a request that are announced; a newest of -1: it is absent. What the broker behind
    does not know is not announced. A request in another version ends its connection."""
    names_all: bool = False
    """Requests that are not in `versions` are absent."""
    absent: frozenset[str] = frozenset()
    """Requests that are not announced, and that end their connection."""
    unsupported: frozenset[str] = frozenset()
    """Requests that are not announced, and are answered by UNSUPPORTED_VERSION: only such whose answer has one error
    for all."""
    refuses: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Requests that are announced, and whose answer has this error, at its top or in each entry. The broker behind
    carries them out: only such that change nothing."""
    commit_errors: Mapping[tuple[str, str], ErrorCode] = field(default_factory=dict)
    """By group and topic, the error by which a commit is refused; the topic "" is every one that is not named."""
    closes_on: frozenset[str] = frozenset()
    """Requests that are announced, and end their connection."""
    resets_newer_api_versions: bool = False
    """ApiVersions in a version that is not known ends the connection, instead of an answer with what is known."""
    largest_request: int | None = None
    """In bytes; a larger one ends its connection."""
    idle_s: float | None = None
    """A connection that was silent for so many seconds is forgotten: it stays open and nothing is answered on it."""
    configs: ConfigRules = field(default_factory=ConfigRules)
    replication: ReplicationRule | None = None
    refused_codecs: Mapping[int, ErrorCode] = field(default_factory=dict)
    """By the number of a codec, the error by which a batch of it is refused."""
    forgets_producers: bool = False
    """Batches outside of transactions are stored without producer id, epoch and sequence."""
    forgets_transactions: bool = False
    """Batches of transactions are stored so, too, and are no part of them."""
    says_epochs_end_at_zero: bool = False
    """OffsetForLeaderEpoch is answered by leader epoch 0 and end offset 0."""
    hides_authorized_operations: bool = False

    def __post_init__(self) -> None:
        named = {*self.versions, *self.absent, *self.unsupported, *self.refuses, *self.closes_on}
        if unknown := named - set(API_KEYS):
            raise ValueError(f"kio knows no requests {sorted(unknown)}")
        for name in self.unsupported:
            if "error_code" not in {
                part.name for part in fields(load_response_schema(API_KEYS[name], max(schema_name_map[name])))
            }:
                raise ValueError(f"an answer to {name} has no error of its own")

    def range_of(self, name: str) -> tuple[int, int]:
        """Return the oldest and newest version that are known of a request; (0, -1): it is not known."""
        if name in self.absent or name in self.unsupported:
            return 0, -1
        oldest, newest = self.versions.get(name, (0, -1) if self.names_all else ANY_VERSION)
        return (0, -1) if newest < 0 else (oldest, newest)
