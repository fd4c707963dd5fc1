"""`KafkaMirrorMaker`, which runs MirrorMaker 1, as the lines of a legacy flow from `source` to `target`.

This module is pure.
"""

from typing import Literal

from lockstep_config.keys.client_keys import CONNECTION
from lockstep_config.keys.lockstep_keys import LEGACY_ABORT, LEGACY_COMMIT_EVERY, LEGACY_GROUP
from lockstep_config.keys.mm1_keys import FLOW, FLOW_LINES, mm1_names, mm2_topics
from lockstep_config.strimzi.access import add_connection
from lockstep_config.strimzi.lines import SET_BY_STRIMZI, Lines, Part, forbidden

_FORBIDDEN = {
    "consumer": ("ssl.", "sasl.", "security.", "bootstrap.servers", "group.id", "interceptor.classes"),
    "producer": ("ssl.", "sasl.", "security.", "bootstrap.servers", "interceptor.classes"),
}


def add_mirror_maker(spec: Part, namespace: str, lines: Lines) -> None:
    """Add all lines of a resource whose fields have been judged. Its mistakes go into `lines` too."""
    for key, value in FLOW_LINES.items():
        lines.add_line(key, value, spec)
    consumer, producer = spec.part("consumer"), spec.part("producer")
    if consumer is not None:
        _add_side(consumer, "consumer", namespace, lines)
        for field, key in (
            ("groupId", LEGACY_GROUP),
            ("numStreams", "tasks.max"),
            ("offsetCommitInterval", LEGACY_COMMIT_EVERY),
        ):
            _add_field(consumer, field, key, lines)
        for key, value in mm1_names(consumer.text("groupId"), FLOW).items():
            lines.add_line(key, value, consumer.place("groupId"))
    if producer is not None:
        _add_side(producer, "producer", namespace, lines)
        _add_field(producer, "abortOnSendFailure", LEGACY_ABORT, lines)
    _add_topics(spec, lines)


def _add_field(part: Part, field: str, key: str, lines: Lines) -> None:
    if part.text(field):
        lines.add_line(f"{FLOW}.{key}", part.text(field), part.place(field))


def _add_side(part: Part, kind: Literal["consumer", "producer"], namespace: str, lines: Lines) -> None:
    alias = FLOW.source if kind == "consumer" else FLOW.target
    add_connection(part, alias, namespace, lines)
    for setting in part.settings():
        if forbidden(setting.key, _FORBIDDEN[kind]):
            lines.note(setting, SET_BY_STRIMZI)
        else:
            prefix = alias if setting.key in CONNECTION else f"{alias}.{kind}"
            lines.add_line(f"{prefix}.{setting.key}", setting.value, setting)


def _add_topics(spec: Part, lines: Lines) -> None:
    named = [name for name in ("include", "whitelist") if spec.leaf(name) is not None]
    if not named:
        lines.problem(
            spec.place("whitelist"), "is missing: write a regular expression for topics, or * for every topic"
        )
        return
    if len(named) == 2:
        lines.without_effect(spec.place("whitelist"), "include counts, as in Strimzi")
    place, topics = spec.place(named[0]), mm2_topics(spec.text(named[0]))
    if not topics:
        lines.problem(place, "names no topic: write a regular expression, or * for every topic")
    lines.add_line(f"{FLOW}.topics", topics, place)
