"""The properties `lockstep.*` that are declared as fields of settings: of copying, of switches, of verification.

There is a field for each key, with its type and its default.
"""

from dataclasses import dataclass
from datetime import timedelta

from lockstep_config.keys.key_types import Key, ValueKind, flag, interval
from lockstep_config.keys.key_values import PerTopic, key_field
from lockstep_config.text.values import duration, moment
from lockstep_state.commands.command_vocabulary import VERIFY_DEPTHS


def _policy(name: str, choices: tuple[str, ...], meaning: str) -> Key:
    return Key(name=name, default=choices[0], choices=choices, meaning=meaning, per_topic=True)


def _hook(name: str, when: str) -> Key:
    return Key(
        name=f"lockstep.switch.hook.{name}",
        default="",
        meaning=f"a command, or an http address, that a switch runs {when}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """Settings of how records are copied. They are fields of `DataPlaneSettings` too."""

    on_gap: PerTopic[str] = key_field(
        _policy(
            "lockstep.on.gap",
            ("halt", "skip", "restart"),
            "when the source has lost records that were not copied, or either side has lost copied ones. halt: an "
            "operator decides. skip the lost records, or restart from the first record that exists",
        )
    )
    on_recreate: PerTopic[str] = key_field(
        _policy(
            "lockstep.on.recreate",
            ("halt", "skip", "restart"),
            "when a topic was deleted and created again. skip: the records that exist already",
        )
    )
    on_doubt: PerTopic[str] = key_field(
        _policy(
            "lockstep.on.doubt",
            ("halt", "progress"),
            "when the target's log does not show how far the copy is. progress: continue from the last saved progress, "
            "which may duplicate records",
        )
    )
    on_refused: PerTopic[str] = key_field(
        _policy(
            "lockstep.on.refused",
            ("halt", "quarantine"),
            "when the target refuses a record, or a batch is corrupt. quarantine: write it to the quarantine topic",
        )
    )
    start_timestamp: PerTopic[int | None] = key_field(
        Key(
            name="lockstep.start.timestamp",
            per_topic=True,
            parse=moment,
            meaning="where the first copy of a topic begins: the first record of that time or later, Unix milliseconds "
            "or 2026-01-31T12:00:00Z. Unset: the consumer's auto.offset.reset. PATTERN=TIME: such topics",
        )
    )
    delay: PerTopic[timedelta] = key_field(
        Key(
            name="lockstep.delay",
            default="0",
            per_topic=True,
            parse=duration,
            meaning="how long a record stays on the source, since it was first seen there, before it is copied: 90s, "
            "30m, 2h or 1d. 0: it is copied at once. PATTERN=TIME: such topics",
        )
    )
    max_in_flight_bytes: int = key_field(
        Key(
            name="lockstep.max.in.flight.bytes",
            kind=ValueKind.INTEGER,
            default="67108864",
            minimum=1_048_576,
            maximum=17_179_869_184,
            meaning="bytes of batches that a slot may have asked for, or hold between fetch and acknowledgement",
        )
    )
    max_bytes_per_s: PerTopic[int | None] = key_field(
        Key(
            name="lockstep.max.bytes.per.second",
            kind=ValueKind.INTEGER,
            minimum=1,
            meaning="most bytes a second that the flow copies, as stored in the log; PATTERN=BYTES: each such topic",
            per_topic=True,
        )
    )

    @property
    def least_delay(self) -> timedelta | None:
        """The shortest delay of a topic; None: all records are copied at once."""
        return min(filter(None, (self.delay.default, *(delay for _, delay in self.delay.others))), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSettings:
    """Settings of `lockstep.switch.*` about a switch of clients to the target."""

    max_lag: timedelta = key_field(
        interval(
            "lockstep.switch.max.lag.seconds",
            "10",
            "lag of a partition, in seconds, up to which the flow is ready to switch",
        )
    )
    hook_before: str = key_field(_hook("before", "before anything changes; if it fails, nothing is"))
    hook_fence: str = key_field(
        _hook("fence", "when the source's writers are to stop; if it fails, nothing is changed")
    )
    hook_redirect: str = key_field(_hook("redirect", "when clients are to go to the target"))
    hook_after: str = key_field(_hook("after", "at the end, also of an aborted switch"))
    hook_timeout: timedelta = key_field(
        interval("lockstep.switch.hook.timeout.seconds", "60", "seconds that each hook of a switch may take")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """Settings of `lockstep.verify.*` about the comparison of copies with their source (`docs/guides/verify.md`)."""

    enabled: bool = key_field(
        flag("lockstep.verify.enabled", "false", "compare each copy with its source all the time, as it grows")
    )
    depth: str = key_field(
        Key(
            name="lockstep.verify.depth",
            default="bytes",
            choices=VERIFY_DEPTHS,
            meaning="how closely. count: the offset runs and ends. crc: the CRC of each batch. bytes: all of a batch "
            "but what Lockstep changes. record: each record. Batches that are not equal are compared by record",
        )
    )
    tasks_max: int = key_field(
        Key(
            name="lockstep.verify.tasks.max",
            kind=ValueKind.INTEGER,
            default="1",
            minimum=1,
            maximum=1000,
            meaning="slots that compare, beside the slots that copy",
        )
    )
    max_bytes_per_s: int = key_field(
        Key(
            name="lockstep.verify.max.bytes.per.second",
            kind=ValueKind.INTEGER,
            default="20000000",
            minimum=1,
            meaning="most bytes a second that each of these slots reads, of source and target together, while "
            "lockstep.verify.enabled compares",
        )
    )
