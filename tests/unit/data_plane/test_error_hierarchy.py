"""Each exception of the copy path says by its category what helps: time, or a decision."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import lockstep_data_plane
import lockstep_kafka.wire
from lockstep_data_plane.core.evaluation import TransformUnavailable
from lockstep_data_plane.core.quarantine_entry import BatchRejected
from lockstep_data_plane.core.resume_deduplicator import RecordMismatch
from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch
from lockstep_data_plane.core.target_log.target_tail import LogContradiction, NotReplicated
from lockstep_data_plane.produce.sender import NoProduceAnswer
from lockstep_data_plane.record_batch.layout import CorruptRecordError
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge
from lockstep_data_plane.record_batch.record_columns import UnmatchedOffset
from lockstep_data_plane.resume.gap_resolver import HaltPartition
from lockstep_data_plane.slot.transform_stage import EvaluationRefused
from lockstep_data_plane.transform.compiled_transform import StatementRefused
from lockstep_data_plane.transform.compiler import TransformsUnavailable
from lockstep_data_plane.transform.evaluation_answer import (
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.jvm_socket import NoTransformServer
from lockstep_data_plane.transform.python_function import FunctionFailed, FunctionRefused
from lockstep_data_plane.transform.python_table import TableTooLarge
from lockstep_kafka.common import errors
from lockstep_kafka.wire.cluster import KafkaProtocolError
from lockstep_kafka.wire.connection_errors import (
    BrokerUnreachable,
    ConnectionClosedError,
    ProtocolUnfitError,
    TopicDeletedError,
)
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_kafka.wire.sasl import SaslRefused
from lockstep_kafka.wire.transaction_coordinator import ProducerFenced
from lockstep_runtime.membership.group_watch import GroupLost
from lockstep_state.errors import LockstepError, NeedsDecision, RetriableError

PASS = {
    BrokerUnreachable,
    ConnectionClosedError,
    CorruptRecordError,
    KafkaProtocolError,
    NoProduceAnswer,
    NoTransformServer,
    NotReplicated,
    ProducerFenced,
    ProtocolUnfitError,
    RecordMismatch,
    SaslRefused,
    TopicDeletedError,
    TransformConnectionLost,
    TransformTimedOut,
}
HALT = {
    AmbiguousMatch,
    BatchRejected,
    EvaluationRefused,
    FunctionFailed,
    FunctionRefused,
    HaltPartition,
    LogContradiction,
    RecordTooLarge,
    StatementRefused,
    TableTooLarge,
    TransformRefused,
    TransformUnavailable,
    TransformVersionDiffers,
    TransformsUnavailable,
    UnmatchedOffset,
}
OF_A_PROCESS = {"lockstep_data_plane.driver", "lockstep_data_plane.spark"}
"""Their exceptions are not of one partition: a slot or Spark ended."""


def _name(error: type[Exception]) -> str:
    return error.__name__


def _exceptions() -> Iterator[type[Exception]]:
    """What the packages of the copy path define."""
    own = pkgutil.walk_packages(lockstep_data_plane.__path__, "lockstep_data_plane.")
    wire = pkgutil.walk_packages(lockstep_kafka.wire.__path__, "lockstep_kafka.wire.")
    for module in (*own, *wire):
        package = ".".join(module.name.split(".")[:2])
        if module.ispkg or module.name.count(".") < 2 or package in OF_A_PROCESS:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.name:
                yield value


def test_each_exception_of_the_copy_path_has_its_category() -> None:
    assert set(_exceptions()) == PASS | HALT
    assert {error for error in PASS | HALT if issubclass(error, RetriableError)} == PASS
    assert {error for error in PASS | HALT if issubclass(error, NeedsDecision)} == HALT


def test_each_trouble_with_a_cluster_is_retriable() -> None:
    own = {value for value in vars(errors).values() if isinstance(value, type) and value.__module__ == errors.__name__}
    fatal = own - {errors.LeadershipLost, errors.ShutdownRequested, errors.RefusedCommand}
    assert fatal
    assert {error for error in fatal if issubclass(error, RetriableError)} == fatal
    assert issubclass(GroupLost, RetriableError)
    assert not issubclass(errors.LeadershipLost, LockstepError)
    assert not issubclass(errors.ShutdownRequested, LockstepError)
    assert not issubclass(errors.RefusedCommand, LockstepError)


@pytest.mark.parametrize("error", [*sorted(PASS, key=_name), errors.ClusterError, TimeoutError])
def test_a_slot_tries_again_after_what_passes(error: type[Exception]) -> None:
    assert issubclass(error, RETRIABLE_ERRORS)


@pytest.mark.parametrize("error", [*sorted(HALT, key=_name), ValueError, RuntimeError, OSError], ids=_name)
def test_a_slot_does_not_try_again_after_anything_else(error: type[Exception]) -> None:
    assert not issubclass(error, RETRIABLE_ERRORS)
