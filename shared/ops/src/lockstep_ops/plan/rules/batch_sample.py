"""The codecs of a topic's newest batches, and how large these would be with another codec. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep_state.kafka.batch_codecs import INSTEAD_OF_REFUSED, UNCOMPRESSED


@dataclass(frozen=True, slots=True)
class CodecSample:
    """The sampled batches of one topic that have one codec.

    `sizes` are their bytes with each codec, as measured on their records. It is empty if the records were not read.
    """

    codec: str
    batches: int
    records: int
    stored: int
    sizes: Mapping[str, int] = field(default_factory=dict)


TopicSample = tuple[CodecSample, ...]
"""The sample of one topic: one entry for each codec in use."""


def average_record(samples: TopicSample) -> float | None:
    """Return the stored bytes of an average record, or None if no batch was sampled."""
    records = sum(sample.records for sample in samples)
    return sum(sample.stored for sample in samples) / records if records else None


def growth_factor(samples: TopicSample, codecs: Mapping[str, str]) -> float | None:
    """Return by how much the batches grow if those of some codecs are compressed with another one.

    Args:
        samples: The sample of the topic.
        codecs: The codec that replaces each codec. Batches of others stay as they are.

    Returns:
        1.0 if no batch changes. None if that cannot be said.
    """
    before, after = 0, 0
    for sample in samples:
        replacement = codecs.get(sample.codec, sample.codec)
        size = sample.stored if replacement == sample.codec else sample.sizes.get(replacement)
        if size is None:
            return None
        before, after = before + sample.stored, after + size
    return after / before if before else None


def replace_refused(refused: Iterable[str], preferred: str | None) -> str:
    """Return the codec that the data plane takes in place of a refused one."""
    not_taken = frozenset(refused)
    first = () if preferred is None or preferred == UNCOMPRESSED else (preferred,)
    candidates: tuple[str, ...] = (*first, *INSTEAD_OF_REFUSED)
    return next(codec for codec in candidates if codec not in not_taken)
