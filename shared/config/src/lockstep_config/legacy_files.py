"""MirrorMaker 1's two property files and its options as the lines of a legacy flow (`docs/legacy.md`).

The consumer's file says what the source is, the producer's what the target is. What a line is called here and where it
stands is kept, so that a mistake is told in its author's words. Each line goes through the checks of mm2.properties.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from lockstep_config.client_keys import CLIENT, CONNECTION
from lockstep_config.key_types import Scope
from lockstep_config.keys import KEYS
from lockstep_config.legacy_keys import IN_EFFECT_LESS, OLD_KEYS, known_partitioner
from lockstep_config.load import bytes_of, configured
from lockstep_config.model import Configuration
from lockstep_config.our_keys import LEGACY_ABORT, LEGACY_COMMIT_EVERY, LEGACY_GROUP
from lockstep_config.problems import ConfigurationError, Problem
from lockstep_config.properties import Entry, PropertiesText, read_properties
from lockstep_protocol.names import Flow

__all__ = ["FLOW", "LegacyFiles", "included", "legacy_text", "load_legacy"]

FLOW = Flow("source", "target")
OPPOSITE = Flow("target", "source")
EVERY_TOPIC = ".*"

COMMAND = Path("lockstep legacy")
"""In front of what is said of an option."""

Side = Literal["consumer", "producer"]


@dataclass(frozen=True, slots=True)
class LegacyFiles:
    """A MirrorMaker 1 by what it is started with. `options`: those that were given, by their names without dashes."""

    consumer: Path
    producer: Path
    options: Mapping[str, str] = field(default_factory=dict)


def load_legacy(files: LegacyFiles, environment: Mapping[str, str]) -> Configuration:
    """The configuration of its one flow, `source->target`. Raises ConfigurationError as `load`."""
    return configured(legacy_text(files), files.consumer, environment)


def legacy_text(files: LegacyFiles) -> PropertiesText:
    """The lines of an mm2.properties file that means the same. Raises ConfigurationError where a file cannot be read;
    what is wrong in them is among the problems, here or once the lines are checked."""
    lines = _Lines()
    try:
        texts = {side: read_properties(bytes_of(path), path) for side, path in _paths(files)}
    except ConfigurationError as exc:
        # `bytes_of` speaks of mm2.properties.
        said = [replace(p, message=p.message.replace("mm2.properties", "properties")) for p in exc.problems]
        raise ConfigurationError(said) from exc
    lines.add(Entry("clusters", f"{FLOW.source}, {FLOW.target}"))
    lines.add(Entry(f"{FLOW}.enabled", "true"))
    # Without a line of its own the opposite pair of clusters would have heartbeats, as in MM2.
    lines.add(Entry(f"{OPPOSITE}.emit.heartbeats.enabled", "false"))
    for side, path in _paths(files):
        text = texts[side]
        lines.problems += text.problems
        lines.notes += [replace(note, file=path) for note in text.notes]
        _take(side, path, text.entries, lines)
    _take_options(files.options, lines)
    _name(files.options.get("name", ""), lines)
    if f"{FLOW}.topics" not in lines.entries:
        lines.add(Entry(f"{FLOW}.topics", EVERY_TOPIC))
    return PropertiesText(tuple(lines.entries.values()), tuple(lines.problems), tuple(lines.notes))


def included(text: str) -> str:
    """MirrorMaker 1's list of topics as a list of ours: commas separate expressions, blanks and quotes around it do
    not count; `*` alone is every topic, which MirrorMaker 1 itself refuses and Strimzi promises."""
    bare = text.strip().replace(" ", "").strip("\"'")
    if bare == "*":
        return EVERY_TOPIC
    return ", ".join(dict.fromkeys(one for one in bare.split(",") if one))


def _paths(files: LegacyFiles) -> Iterator[tuple[Side, Path]]:
    yield "consumer", files.consumer
    yield "producer", files.producer


@dataclass(slots=True)
class _Lines:
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        self.entries[entry.key] = entry

    def problem(self, entry: Entry, message: str) -> None:
        self.problems.append(Problem(entry.file or COMMAND, entry.line, entry.shown, message))

    def note(self, entry: Entry, message: str) -> None:
        self.notes.append(Problem(entry.file or COMMAND, entry.line, entry.shown, message))


def _take(side: Side, path: Path, entries: Iterable[Entry], lines: _Lines) -> None:
    alias = FLOW.source if side == "consumer" else FLOW.target
    there = set()
    for line in entries:
        entry = replace(line, file=path, written=line.key)
        there.add(line.key)
        if (why := OLD_KEYS[side].get(line.key)) is not None:
            lines.problem(entry, why)
        elif (reason := IN_EFFECT_LESS[side].get(line.key)) is not None:
            lines.note(entry, f"has no effect: {reason}")
        elif line.key == "partitioner.class" and side == "producer" and not known_partitioner(line.value):
            lines.problem(
                entry,
                f"is {line.value.strip()!r}, a Java class, which cannot run here: remove it; records keep the "
                "partition that they have on the source (lockstep.legacy.partitioning=preserve)",
            )
        else:
            _place(replace(entry, key=_key_of(side, alias, line.key)), lines)
    if "bootstrap.servers" not in there:
        # Empty: the line's own check says what to write.
        lines.add(Entry(f"{alias}.bootstrap.servers", "", file=path, written="bootstrap.servers"))
    if side == "consumer" and "group.id" not in there:
        lines.add(Entry(f"{FLOW}.{LEGACY_GROUP}", "", file=path, written="group.id"))


def _key_of(side: Side, alias: str, name: str) -> str:
    """What a line of MirrorMaker 1 is called in mm2.properties."""
    if name == "group.id" and side == "consumer":
        return f"{FLOW}.{LEGACY_GROUP}"
    if name in CONNECTION:
        return f"{alias}.{name}"
    known = KEYS.get(name)
    if name.startswith(("config.providers.", "lockstep.spark.")) or name == "config.providers":
        return name
    if known is None or name in CLIENT[side]:
        return f"{alias}.{side}.{name}"
    if Scope.FLOW in known.scopes:
        return f"{FLOW}.{name}"
    return f"{FLOW.target}.{name}" if Scope.CLUSTER in known.scopes else name


def _place(entry: Entry, lines: _Lines) -> None:
    if entry.key == "clusters":
        lines.problem(entry, "has no place here: the consumer's file is about the source, the producer's the target")
        return
    other = lines.entries.get(entry.key)
    if other is not None and other.file is not None and other.value.strip() != entry.value.strip():
        lines.problem(entry, f"is said otherwise in {other.file.name}:{other.line}: keep one of them")
        return
    lines.add(entry)


def _name(stated: str, lines: _Lines) -> None:
    """Every legacy flow has the same aliases, so what it writes down on its target is named after its group."""
    wanted = stated.strip() or lines.entries[f"{FLOW}.{LEGACY_GROUP}"].value.strip()
    name = re.sub(r"[^A-Za-z0-9_-]", "-", wanted)
    if name != wanted:
        name += f"-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"
    for key, value in (("group.id", name), ("offset.storage.topic", f"mm2-offsets-{name}.{FLOW.source}.internal")):
        lines.entries.setdefault(f"{FLOW.target}.{key}", Entry(f"{FLOW.target}.{key}", value))


def _take_options(options: Mapping[str, str], lines: _Lines) -> None:
    given = {name: Entry("", value, file=COMMAND, written=f"--{name}") for name, value in options.items()}
    for name, key in (
        ("num.streams", "tasks.max"),
        ("abort.on.send.failure", LEGACY_ABORT),
        ("offset.commit.interval.ms", LEGACY_COMMIT_EVERY),
    ):
        if name in given:
            lines.add(replace(given[name], key=f"{FLOW}.{key}"))
    if {"whitelist", "include"} <= given.keys():
        lines.note(given["whitelist"], "has no effect: --include counts, as in MirrorMaker")
    topics = given.get("include", given.get("whitelist"))
    if topics is not None:
        value = included(topics.value)
        if not value:
            lines.problem(topics, "names no topic: write Java regular expressions between commas, or * for every topic")
        lines.add(replace(topics, key=f"{FLOW}.topics", value=value))
    for name, why in (
        ("message.handler", "a message handler changes records and is a Java class, which cannot run here"),
        ("consumer.rebalance.listener", "a rebalance listener is a Java class, which cannot run here"),
    ):
        if name in given:
            lines.problem(given[name], f"is {options[name]!r}, which is refused: {why}; start without it")
