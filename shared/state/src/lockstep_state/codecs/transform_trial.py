"""What the command asks the data plane's trial of transforms, and what that answers: one JSON object a line.

The command writes one request and closes the pipe. The trial answers with lines `{"progress": ...}` and ends with one
`{"results": ...}` or `{"error": ...}`. Secrets go through the pipe only. Bytes are in base64, and a header's name is
text in which bytes that are no UTF-8 are escaped as Python does it (`surrogateescape`).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Header = tuple[str, bytes | None]

REQUEST_FIELDS = ("name", "statement", "function", "tombstones", "filtered", "measured")
"""The fields of a request that JSON has as they are."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A record as a consumer sees it, by its offset in its partition. `timestamp` is in milliseconds; -1: none.

    With `log_append` the broker set the timestamp.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    log_append: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": [[_text(name.encode("utf-8", "surrogateescape")), _text(value)] for name, value in self.headers],
            "log_append": self.log_append,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "TrialRecord":
        headers = tuple(
            (base64.b64decode(name).decode("utf-8", "surrogateescape"), _bytes(value))
            for name, value in body["headers"]
        )
        return cls(
            body["offset"], body["timestamp"], _bytes(body["key"]), _bytes(body["value"]), headers, body["log_append"]
        )


@dataclass(frozen=True, slots=True)
class TrialPartition:
    """Records of one partition of the source, with ascending offsets."""

    topic: str
    partition: int
    records: tuple[TrialRecord, ...]


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One transform to try, and records to evaluate. With `measured` its cost is measured with sample records.

    `statement` is compiled, unless there is a `function` in Python, `package.module:function`. `tombstones` and
    `filtered` are those of `lockstep.transform.NAME`.
    """

    name: str
    statement: str
    tombstones: Literal["pass", "filter"] = "pass"
    filtered: Literal["drop", "tombstone"] = "drop"
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    partitions: tuple[TrialPartition, ...] = ()
    measured: bool = False
    function: str = ""


@dataclass(frozen=True, slots=True)
class TrialMistake:
    """A mistake in a statement, or of a function. `line` and `column` count from 1; 0: it is nowhere in particular."""

    code: str
    line: int
    column: int
    fragment: str
    message: str
    condition: str = ""
    """Spark's error condition; "": Spark accepts the statement."""
    suggestion: str = ""

    def __str__(self) -> str:
        location = f"line {self.line}, column {self.column}: " if self.line else ""
        meant = f" ({self.fragment})" if self.fragment else ""
        return f"{location}{self.message}{meant}"


@dataclass(frozen=True, slots=True)
class TrialCost:
    """What evaluation costs: milliseconds of a call with one record, and records a second in large calls.

    `reason` says why nothing was measured; "": it was.
    """

    call_ms: float = 0.0
    records_per_s: float = 0.0
    sample_bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What became of one record: `kept`, with the record as it is then, `dropped` or `failed`.

    A failure has Spark's condition and the fragment of the statement.
    """

    topic: str
    partition: int
    offset: int
    state: Literal["kept", "dropped", "failed"]
    record: TrialRecord | None = None
    condition: str = ""
    fragment: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What became of one transform. With `mistakes` it cannot be used, and all else is empty.

    Which columns a function makes, and whether it filters, is not known: that is empty, too.
    """

    name: str
    mistakes: tuple[TrialMistake, ...] = ()
    columns_read: tuple[str, ...] = ()
    columns_written: tuple[str, ...] = ()
    filters: bool = False
    secrets: tuple[str, ...] = ()
    version: str = ""
    """The version that rows and events have; "": it is unknown, because a secret is missing."""
    cost: TrialCost | None = None
    outcomes: tuple[TrialOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """The present step of a trial, and how many of all are done."""

    text: str
    done: int
    total: int


def encode_requests(requests: Sequence[TrialRequest]) -> bytes:
    """Return the one line that the trial reads."""
    body = [
        {
            **{name: getattr(request, name) for name in REQUEST_FIELDS},
            "secrets": dict(request.secrets),
            "partitions": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "records": [record.as_json() for record in partition.records],
                }
                for partition in request.partitions
            ],
        }
        for request in requests
    ]
    return json.dumps(body).encode() + b"\n"


def decode_requests(line: bytes) -> tuple[TrialRequest, ...]:
    """Return the requests of a line. Raises ValueError, KeyError or TypeError for what is none."""
    return tuple(
        TrialRequest(
            **{
                **body,
                "partitions": tuple(
                    TrialPartition(
                        partition["topic"],
                        partition["partition"],
                        tuple(map(TrialRecord.from_json, partition["records"])),
                    )
                    for partition in body["partitions"]
                ),
            }
        )
        for body in json.loads(line)
    )


def encode_progress(progress: TrialProgress) -> bytes:
    return json.dumps({"progress": asdict(progress)}).encode() + b"\n"


def encode_error(error: str) -> bytes:
    return json.dumps({"error": error}).encode() + b"\n"


def encode_results(results: Sequence[TrialResult]) -> bytes:
    """Return the last line of a trial."""
    body = [
        {
            "name": result.name,
            "mistakes": [asdict(mistake) for mistake in result.mistakes],
            "columns_read": result.columns_read,
            "columns_written": result.columns_written,
            "filters": result.filters,
            "secrets": result.secrets,
            "version": result.version,
            "cost": None if result.cost is None else asdict(result.cost),
            "outcomes": [
                {
                    **{name: getattr(outcome, name) for name in ("topic", "partition", "offset", "state")},
                    "record": None if outcome.record is None else outcome.record.as_json(),
                    "condition": outcome.condition,
                    "fragment": outcome.fragment,
                }
                for outcome in result.outcomes
            ],
        }
        for result in results
    ]
    return json.dumps({"results": body}).encode() + b"\n"


def decode_answer(line: bytes) -> TrialProgress | tuple[TrialResult, ...] | str:
    """Return what a line of a trial says; a text is its error.

    Raises:
        ValueError: The line is none of a trial. KeyError and TypeError likewise.
    """
    body = json.loads(line)
    if "progress" in body:
        return TrialProgress(**body["progress"])
    if "error" in body:
        return str(body["error"])
    return tuple(_result(result) for result in body["results"])


def _result(body: Mapping[str, Any]) -> TrialResult:
    return TrialResult(
        body["name"],
        tuple(TrialMistake(**mistake) for mistake in body["mistakes"]),
        tuple(body["columns_read"]),
        tuple(body["columns_written"]),
        body["filters"],
        tuple(body["secrets"]),
        body["version"],
        None if body["cost"] is None else TrialCost(**body["cost"]),
        tuple(
            TrialOutcome(
                **{**outcome, "record": None if outcome["record"] is None else TrialRecord.from_json(outcome["record"])}
            )
            for outcome in body["outcomes"]
        ),
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
