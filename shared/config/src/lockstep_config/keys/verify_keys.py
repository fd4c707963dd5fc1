"""The properties `lockstep.verify.*`: how copies are compared with their source."""

from dataclasses import dataclass

from lockstep_config.keys.key_types import Key, Kind, flag
from lockstep_config.keys.key_values import key_field


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """Settings of the comparison of copies with their source (`docs/guides/verify.md`), a field for each key."""

    enabled: bool = key_field(
        flag("lockstep.verify.enabled", "false", "compare each copy with its source all the time, as it grows")
    )
    depth: str = key_field(
        Key(
            name="lockstep.verify.depth",
            default="bytes",
            choices=("count", "crc", "bytes", "record"),
            meaning="how closely. count: the offset runs and ends. crc: the CRC of each batch. bytes: all of a batch "
            "but what Lockstep changes. record: each record. Batches that are not equal are compared by record",
        )
    )
    tasks_max: int = key_field(
        Key(
            name="lockstep.verify.tasks.max",
            kind=Kind.INTEGER,
            default="1",
            minimum=1,
            maximum=1000,
            meaning="slots that compare, beside the slots that copy",
        )
    )
    max_bytes_per_s: int = key_field(
        Key(
            name="lockstep.verify.max.bytes.per.second",
            kind=Kind.INTEGER,
            default="20000000",
            minimum=1,
            meaning="most bytes a second that each of these slots reads, of source and target together, while "
            "lockstep.verify.enabled compares",
        )
    )
