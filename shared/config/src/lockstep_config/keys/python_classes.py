"""Filters and replication policies that users write in Python: `lockstep.topic.filter.class=package.module:Class`.

A class is imported and an object of it made when a file is read, and again wherever its settings travel (Spark's
workers). The lines of the file travel, not the object. Its answers and errors are checked at each call.
"""

import difflib
import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lockstep_config.text.secrets import MASK, is_secret
from lockstep_config.text.values import BadValue
from lockstep_rules.filters import ConfigPropertyFilter
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode

PYTHON_KEYS = {
    "lockstep.replication.policy.class": "replication.policy.class",
    "lockstep.topic.filter.class": "topic.filter.class",
    "lockstep.group.filter.class": "group.filter.class",
    "lockstep.config.property.filter.class": "config.property.filter.class",
}
"""Lockstep's keys, each with the key of MM2 whose Java class the Python class replaces."""

JAVA_KEYS = {java: lockstep for lockstep, java in PYTHON_KEYS.items()}

POLICY_METHODS = tuple(
    name for name, member in vars(ReplicationPolicy).items() if callable(member) and not name.startswith("_")
)


class ClassFailed(Exception):
    """A class that a file names raised an error, or gave an answer of the wrong type.

    The text says which class, and which line names it. Nothing that the class decides can be decided until it is
    mended.
    """

    def to_reason(self) -> Reason:
        """Return the error as a code with details, for rows and events."""
        return ReasonCode.CLASS_FAILED.to_reason(text=str(self))


@dataclass(frozen=True)
class PythonClass:
    """An object of a Python class that the file names.

    `reference` is `package.module:Class`, `properties` what its `configure` is given, `place` the line that names it
    (`FILE:LINE: KEY`). Two are equal if they are made in the same way. It can be pickled: the class is imported
    again.

    Raises:
        BadValue: The object cannot be made; the error says what is wrong.
    """

    reference: str
    properties: Mapping[str, str] = field(repr=False, hash=False)
    place: str = field(default="", compare=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    made: Any = field(init=False, repr=False, compare=False)
    methods: ClassVar[tuple[str, ...]]
    """The methods that the class must have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", self._make())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reference, dict(self.properties), self.place, dict(self.arguments))

    def validate(self) -> None:
        """Call each method once, so that a mistake shows when the file is read.

        Raises:
            ClassFailed: A method raised an error, or gave a wrong answer.
        """
        raise NotImplementedError

    def call(self, method: str, *arguments: str, kind: Callable[[object], bool], expected: str) -> Any:
        """Call a method of the class and return its answer.

        Args:
            method: The method's name.
            arguments: Its arguments.
            kind: A test of the answer.
            expected: The words for a right answer, for the error.

        Raises:
            ClassFailed: The method raised an error, or `kind` does not hold for the answer.
        """
        call = f"{method}({', '.join(map(repr, arguments))})"
        try:
            answer = getattr(self.made, method)(*arguments)
        except Exception as exc:  # a user's code: every error is reported with its place
            raise ClassFailed(self._with_class_name(f"{call} raised {_named(exc)}")) from exc
        if not kind(answer):
            raise ClassFailed(self._with_class_name(f"{call} answered {answer!r}; it must be {expected}"))
        return answer

    def call_predicate(self, method: str, name: str) -> bool:
        return bool(self.call(method, name, kind=_is_bool, expected="True or False"))

    def _with_class_name(self, message: str) -> str:
        # An error of the class may quote a secret that the class was given.
        for key, value in self.properties.items():
            if value and is_secret(key):
                message = message.replace(value, MASK)
        return f"{self.place}: {self.reference}: {message}"

    def _make(self) -> Any:
        cls = import_class(self.reference)
        missing = [name for name in self.methods if not callable(getattr(cls, name, None))]
        if missing:
            raise BadValue(f"is {self.reference!r}, which has no {' and no '.join(missing)}")
        arguments = self.arguments if issubclass(cls, DefaultReplicationPolicy) else {}
        if not issubclass(cls, IdentityReplicationPolicy):
            arguments = {name: value for name, value in arguments.items() if name != "source_alias"}
        try:
            instance = cls(**arguments)
            if callable(configure := getattr(instance, "configure", None)):
                configure(dict(self.properties))
        except Exception as exc:  # a user's code
            message = self._with_class_name(f"raised {_named(exc)} when it was made").removeprefix(f"{self.place}: ")
            raise BadValue(f"is of no use: {message}") from exc
        return instance


class PythonTopics(PythonClass):
    """A user's `TopicFilter`, as `Names`."""

    methods = ("should_replicate_topic",)

    def matches(self, name: str) -> bool:
        return self.call_predicate("should_replicate_topic", name)

    def validate(self) -> None:
        self.matches("t")


class PythonGroups(PythonClass):
    """A user's `GroupFilter`, as `Names`."""

    methods = ("should_replicate_group",)

    def matches(self, name: str) -> bool:
        return self.call_predicate("should_replicate_group", name)

    def validate(self) -> None:
        self.matches("g")


class PythonConfigProperties(PythonClass, ConfigPropertyFilter):
    """A user's `ConfigPropertyFilter`."""

    methods = ("should_replicate_config_property",)

    def should_replicate_config_property(self, name: str) -> bool:
        return self.call_predicate("should_replicate_config_property", name)

    def should_replicate_source_default(self, name: str) -> bool:
        if not hasattr(self.made, "should_replicate_source_default"):
            return False
        return self.call_predicate("should_replicate_source_default", name)

    def validate(self) -> None:
        self.should_replicate_config_property("retention.ms")
        self.should_replicate_source_default("retention.ms")


class PythonPolicy(PythonClass, ReplicationPolicy):
    """A user's `ReplicationPolicy`. A class that inherits from MM2's is made with the separator of the file."""

    methods = POLICY_METHODS

    @property
    def keeps_names(self) -> bool | None:
        """The class's own answer whether it keeps names (`policy.keeps_names`); None if it has none."""
        own = getattr(self.made, "keeps_names", None)
        return None if own is None else bool(own)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self._name("format_remote_topic", source_alias, topic)

    def topic_source(self, topic: str) -> str | None:
        return self._name_or_none("topic_source", topic)

    def upstream_topic(self, topic: str) -> str | None:
        return self._name_or_none("upstream_topic", topic)

    def original_topic(self, topic: str) -> str:
        return self._name("original_topic", topic)

    def heartbeats_topic(self) -> str:
        return self._name("heartbeats_topic")

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self._name("offset_syncs_topic", other_alias)

    def checkpoints_topic(self, source_alias: str) -> str:
        return self._name("checkpoints_topic", source_alias)

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.call_predicate("is_heartbeats_topic", topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        return self.call_predicate("is_checkpoints_topic", topic)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return self.call_predicate("is_mm2_internal_topic", topic)

    def is_internal_topic(self, topic: str) -> bool:
        return self.call_predicate("is_internal_topic", topic)

    def validate(self) -> None:
        remote = self.format_remote_topic("A", "t")
        self.heartbeats_topic()
        for topic in ("t", remote):
            self.topic_source(topic)
            self.upstream_topic(topic)
            self.original_topic(topic)
            self.is_heartbeats_topic(topic)
            self.is_checkpoints_topic(topic)
            self.is_mm2_internal_topic(topic)
            self.is_internal_topic(topic)
        self.offset_syncs_topic("A")
        self.checkpoints_topic("A")

    def _name(self, method: str, *arguments: str) -> str:
        return str(self.call(method, *arguments, kind=_is_name, expected="a name"))

    def _name_or_none(self, method: str, topic: str) -> str | None:
        answer = self.call(
            method, topic, kind=lambda answer: answer is None or _is_name(answer), expected="a name, or None"
        )
        return None if answer is None else str(answer)


def import_class(reference: str) -> type:
    """Return the class that `package.module:Class` names.

    Raises:
        BadValue: There is no such class, or its module cannot be imported.
    """
    module_name, colon, name = reference.strip().partition(":")
    parts = (*module_name.split("."), name)
    if not colon or not all(part.isidentifier() for part in parts):
        raise BadValue(f"is {reference!r}, which names no Python class: write package.module:Class")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as exc:
        is_missing = isinstance(exc, ModuleNotFoundError) and exc.name and f"{module_name}.".startswith(f"{exc.name}.")
        if is_missing:
            message = (
                f"names the module {module_name}, which is not there: install its package wherever services and "
                "Spark's executors run, or put its folder on PYTHONPATH"
            )
            raise BadValue(message) from exc
        raise BadValue(f"names the module {module_name}, which cannot be imported: {_named(exc)}") from exc
    cls = getattr(module, name, None)
    if cls is None:
        nearest = difflib.get_close_matches(name, vars(module), 1)
        raise BadValue(
            f"names {name}, which the module {module_name} does not have"
            + (f": did you mean {module_name}:{nearest[0]}?" if nearest else "")
        )
    if not isinstance(cls, type):
        raise BadValue(f"names {name} of {module_name}, which is no class")
    return cls


def read_own_keys(reference: str) -> Collection[str]:
    """Return the properties that a class takes besides MM2's (`own_keys`); none if there is no such class."""
    try:
        named = getattr(import_class(reference), "own_keys", ())
    except BadValue:
        return ()
    keys = (named,) if isinstance(named, str) else named if isinstance(named, Collection) else ()
    return frozenset(key for key in keys if isinstance(key, str))


def _is_bool(answer: object) -> bool:
    return isinstance(answer, bool)


def _is_name(answer: object) -> bool:
    return isinstance(answer, str) and answer != ""


def _named(exc: BaseException) -> str:
    one_line = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {one_line}" if one_line else type(exc).__name__
