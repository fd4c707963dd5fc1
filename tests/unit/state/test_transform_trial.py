"""The lines between `lockstep transform` and the data plane's trial mean the same on both sides."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.codecs.transform_trial import (
    TrialCost,
    TrialMistake,
    TrialOutcome,
    TrialPartition,
    TrialProgress,
    TrialRecord,
    TrialRequest,
    TrialResult,
    decode_answer,
    decode_requests,
    encode_error,
    encode_progress,
    encode_requests,
    encode_results,
)

few_bytes = st.none() | st.binary(max_size=8)
names = st.text(max_size=4) | st.just("\udcff")
records = st.builds(
    TrialRecord,
    st.integers(0, 2**62),
    st.integers(-1, 2**41),
    few_bytes,
    few_bytes,
    st.lists(st.tuples(names, few_bytes), max_size=2).map(tuple),
    st.booleans(),
)
partitions = st.builds(TrialPartition, st.text(max_size=4), st.integers(0, 9), st.lists(records, max_size=3).map(tuple))


@given(st.lists(partitions, max_size=2).map(tuple), st.text(max_size=4), st.booleans())
def test_requests(parts: tuple[TrialPartition, ...], text: str, measured: bool) -> None:
    request = TrialRequest("pii", text, "filter", "tombstone", {"salt": text}, parts, measured, text)
    line = encode_requests([request])
    assert line.count(b"\n") == 1
    assert decode_requests(line) == (request,)


@given(records, st.text(max_size=4))
def test_results(record: TrialRecord, text: str) -> None:
    result = TrialResult(
        "pii",
        (TrialMistake("CODE", 1, 2, text, text, "CONDITION", text),),
        ("value",),
        ("key",),
        True,
        ("salt",),
        "v",
        TrialCost(1.5, 2.5, 3, text),
        (TrialOutcome("t", 0, 1, "kept", record), TrialOutcome("t", 0, 2, "failed", None, "C", text)),
    )
    line = encode_results([result, TrialResult("bare")])
    assert line.count(b"\n") == 1
    assert decode_answer(line) == (result, TrialResult("bare"))


def test_progress_and_errors() -> None:
    assert decode_answer(encode_progress(TrialProgress("starting", 1, 4))) == TrialProgress("starting", 1, 4)
    assert decode_answer(encode_error("no Java")) == "no Java"
