"""MirrorMaker 1's two files and its options as lines of a legacy flow (`docs/guides/migrate-from-mm1.md`).

The consumer's file describes the source, the producer's the target. Each line keeps its key and its place, so that a
mistake is reported in its author's words. Each line goes through the checks of mm2.properties.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from lockstep_config.flow.model import Configuration
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.keys.lockstep_keys import LEGACY_ABORT, LEGACY_COMMIT_EVERY, LEGACY_GROUP
from lockstep_config.keys.mm1_keys import (
    EVERY_TOPIC,
    FLOW,
    FLOW_LINES,
    INEFFECTIVE_KEYS,
    OLD_KEYS,
    known_partitioner,
    mm1_names,
    mm2_topics,
)
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.transform_keys import split_transform_key
from lockstep_config.loader.configuration import build_configuration, read_config_file, with_overrides
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.text.properties import Entry, PropertiesText, read_properties

COMMAND = Path("lockstep legacy")
"""The place of a mistake in an option."""

Side = Literal["consumer", "producer"]


@dataclass(frozen=True, slots=True)
class LegacyFiles:
    """The files and options with which a MirrorMaker 1 is started.

    `options` are those that were given, by their names without dashes.
    """

    consumer: Path
    producer: Path
    options: Mapping[str, str] = field(default_factory=dict)


def load_legacy(files: LegacyFiles, environment: Mapping[str, str]) -> Configuration:
    """Return the configuration of the one flow of a MirrorMaker 1, `source->target`.

    Raises:
        ConfigurationError: As `load`.
    """
    return build_configuration(with_overrides(legacy_text(files), environment), files.consumer, environment)


def legacy_text(files: LegacyFiles) -> PropertiesText:
    """Return the lines of an mm2.properties file that means the same.

    Mistakes in the lines are among the problems of the result, or show when the lines are checked.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    lines = _Lines(COMMAND)
    for key, value in FLOW_LINES.items():
        lines.add_entry(Entry(key, value))
    sides: tuple[tuple[Side, Path], ...] = (("consumer", files.consumer), ("producer", files.producer))
    for side, path in sides:
        text = read_properties(read_config_file(path), path)
        lines.problems += text.problems
        lines.notes += [replace(note, file=path) for note in text.notes]
        _add_entries(side, path, text.entries, lines)
    _read_options(files.options, lines)
    group = lines.entries[f"{FLOW}.{LEGACY_GROUP}"].value.strip()
    for key, value in mm1_names(files.options.get("name", "").strip() or group, FLOW).items():
        lines.entries.setdefault(key, Entry(key, value))
    if f"{FLOW}.topics" not in lines.entries:
        lines.add_entry(Entry(f"{FLOW}.topics", EVERY_TOPIC))
    entries = tuple(lines.entries.values())
    return PropertiesText(entries, tuple(lines.problems), tuple(lines.notes), tuple(lines.unused))


@dataclass(slots=True)
class _Lines(Diagnostics):
    entries: dict[str, Entry] = field(default_factory=dict)

    def add_entry(self, entry: Entry) -> None:
        self.entries[entry.key] = entry


def _add_entries(side: Side, path: Path, entries: Iterable[Entry], lines: _Lines) -> None:
    alias = FLOW.source if side == "consumer" else FLOW.target
    keys = set()
    for line in entries:
        entry = replace(line, file=path, written=line.key)
        keys.add(line.key)
        if (refusal := OLD_KEYS[side].get(line.key)) is not None:
            lines.plain_problem(entry, refusal)
        elif (reason := INEFFECTIVE_KEYS[side].get(line.key)) is not None:
            lines.without_effect(entry, reason)
        elif line.key == "partitioner.class" and side == "producer" and not known_partitioner(line.value):
            lines.plain_problem(
                entry,
                f"is {line.value.strip()!r}, a Java class, which cannot run here: remove it. Records keep the "
                "partition that they have on the source (lockstep.legacy.partitioning=preserve). With key, Java's own "
                "partitioner chooses it",
            )
        else:
            _place(replace(entry, key=_mm2_key(side, alias, line.key)), lines)
    if "bootstrap.servers" not in keys:
        # The line is empty: its check says what to write.
        lines.add_entry(Entry(f"{alias}.bootstrap.servers", "", file=path, written="bootstrap.servers"))
    if side == "consumer" and "group.id" not in keys:
        lines.add_entry(Entry(f"{FLOW}.{LEGACY_GROUP}", "", file=path, written="group.id"))


def _mm2_key(side: Side, alias: str, name: str) -> str:
    """Return the key in mm2.properties of a line of MirrorMaker 1."""
    if name == "group.id" and side == "consumer":
        return f"{FLOW}.{LEGACY_GROUP}"
    if name in CONNECTION:
        return f"{alias}.{name}"
    if split_transform_key(name) is not None:
        return f"{FLOW}.{name}"
    key = KEYS.get(name)
    if name.startswith(("config.providers.", "lockstep.spark.")) or name == "config.providers":
        return name
    if key is None or name in CLIENT[side]:
        return f"{alias}.{side}.{name}"
    if KeyLevel.FLOW in key.levels:
        return f"{FLOW}.{name}"
    return f"{FLOW.target}.{name}" if KeyLevel.CLUSTER in key.levels else name


def _place(entry: Entry, lines: _Lines) -> None:
    if entry.key == "clusters":
        lines.plain_problem(
            entry, "has no place here: the consumer's file is about the source, the producer's the target"
        )
        return
    earlier = lines.entries.get(entry.key)
    if earlier is not None and earlier.file is not None and earlier.value.strip() != entry.value.strip():
        lines.plain_problem(entry, f"is said otherwise in {earlier.file.name}:{earlier.line}: keep one of them")
        return
    lines.add_entry(entry)


def _read_options(options: Mapping[str, str], lines: _Lines) -> None:
    entries = {name: Entry("", value, file=COMMAND, written=f"--{name}") for name, value in options.items()}
    for name, key in (
        ("num.streams", "tasks.max"),
        ("abort.on.send.failure", LEGACY_ABORT),
        ("offset.commit.interval.ms", LEGACY_COMMIT_EVERY),
    ):
        if name in entries:
            lines.add_entry(replace(entries[name], key=f"{FLOW}.{key}"))
    if {"whitelist", "include"} <= entries.keys():
        lines.without_effect(entries["whitelist"], "--include counts, as in MirrorMaker")
    topics = entries.get("include", entries.get("whitelist"))
    if topics is not None:
        value = mm2_topics(topics.value)
        if not value:
            lines.plain_problem(
                topics, "names no topic: write Java regular expressions between commas, or * for every topic"
            )
        lines.add_entry(replace(topics, key=f"{FLOW}.topics", value=value))
    for name, reason in (
        ("message.handler", "a message handler changes records and is a Java class, which cannot run here"),
        ("consumer.rebalance.listener", "a rebalance listener is a Java class, which cannot run here"),
    ):
        if name in entries:
            lines.plain_problem(entries[name], f"is {options[name]!r}, which is refused: {reason}; start without it")
