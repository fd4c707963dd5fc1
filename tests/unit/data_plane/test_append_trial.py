"""What the answers to a trial show of a target, and how the flow appends there then."""

from typing import Any

import pytest

from lockstep_data_plane.core.append_trial import AppendFault, AppendMode, AppendTrial, TrialAnswer, choose_mode
from lockstep_data_plane.record_batch.layout import Batch
from tests.support.batch_bytes import batch, records

OURS, EPOCH = 4000, 3
OUT_OF_ORDER, FENCED, UNKNOWN_PRODUCER = TrialAnswer(45), TrialAnswer(47), TrialAnswer(59)


def kept(offset: int, epoch: int, sequence: int, producer_id: int = OURS) -> Batch:
    return batch(records(offset, 1), producer=(producer_id, epoch, sequence))


LOG = [kept(10, EPOCH, 0), kept(11, EPOCH, 1), kept(14, EPOCH + 1, 0)]


def trial(**different: Any) -> AppendTrial:
    """As Kafka answers, but for these fields."""
    kafkas = AppendTrial(
        producer_id=OURS,
        epoch=EPOCH,
        first=TrialAnswer(0, 10),
        repeated=TrialAnswer(0, 10),
        gap=OUT_OF_ORDER,
        elsewhere=TrialAnswer(0, 11),
        next_epoch=TrialAnswer(0, 14),
        earlier_epoch=FENCED,
        log=LOG,
    )
    return kafkas._replace(**different)


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        pytest.param(trial(), [], id="Kafka"),
        pytest.param(trial(repeated=TrialAnswer(46)), [], id="a duplicate is named as one"),
        pytest.param(trial(repeated=OUT_OF_ORDER), [], id="a duplicate is out of order"),
        pytest.param(trial(log=[*LOG, kept(12, 0, 0, 77)]), [], id="others append meanwhile"),
        pytest.param(trial(log=[]), [AppendFault.IDS_LOST], id="the log gives nothing"),
        pytest.param(
            trial(log=[kept(10, -1, -1, -1), kept(11, -1, -1, -1), kept(14, -1, -1, -1)]),
            [AppendFault.IDS_LOST],
            id="batches are stored without an id",
        ),
        pytest.param(
            trial(log=[kept(10, EPOCH, 0), kept(11, EPOCH, 0), kept(14, EPOCH + 1, 0)]),
            [AppendFault.IDS_LOST],
            id="another sequence is stored",
        ),
        pytest.param(
            trial(log=[kept(10, EPOCH, 0), kept(11, EPOCH, 1), kept(14, EPOCH, 0)]),
            [AppendFault.IDS_LOST],
            id="another epoch is stored",
        ),
        pytest.param(
            trial(log=[batch(records(10, 5), producer=(OURS, EPOCH, 0))]),
            [AppendFault.IDS_LOST],
            id="batches are joined",
        ),
        pytest.param(trial(gap=TrialAnswer(0, 11)), [AppendFault.GAPS_TAKEN], id="gaps are taken"),
        pytest.param(trial(repeated=TrialAnswer(0, 11)), [AppendFault.REPEATS_TAKEN], id="repeats are appended"),
        pytest.param(trial(elsewhere=UNKNOWN_PRODUCER), [AppendFault.SESSION_BOUND], id="ids belong to a session"),
        pytest.param(trial(next_epoch=FENCED), [AppendFault.EPOCHS_REFUSED], id="the target gives epochs itself"),
        pytest.param(
            trial(next_epoch=FENCED, earlier_epoch=TrialAnswer(0, 12)),
            [AppendFault.EPOCHS_REFUSED],
            id="so the former epoch goes on",
        ),
        pytest.param(trial(earlier_epoch=TrialAnswer(0, 15)), [AppendFault.EPOCHS_IGNORED], id="epochs are ignored"),
    ],
)
def test_append_trial_finds_what_the_target_does_not_do(found: AppendTrial, faults: list[AppendFault]) -> None:
    assert list(found.find_faults()) == faults


@pytest.mark.parametrize(
    ("code", "passes"), [(0, False), (45, False), (59, False), (87, False), (6, True), (19, True), (29, True)]
)
def test_trial_answer_that_may_be_another_next_time_passes(code: int, passes: bool) -> None:
    assert TrialAnswer(code).passes == passes


@pytest.mark.parametrize(
    ("faults", "transactions", "keeps_names", "mode"),
    [
        ((), True, False, AppendMode.SEQUENCES),
        ((), False, True, AppendMode.SEQUENCES),
        ((AppendFault.IDS_LOST,), True, False, AppendMode.TRANSACTIONS),
        ((AppendFault.IDS_LOST,), True, True, AppendMode.TRANSACTIONS),
        ((AppendFault.IDS_LOST,), False, False, AppendMode.READ_BACK),
        (tuple(AppendFault), False, False, AppendMode.READ_BACK),
        ((AppendFault.IDS_LOST,), False, True, None),
    ],
)
def test_append_mode_is_the_safest_that_the_target_has(
    faults: tuple[AppendFault, ...], transactions: bool, keeps_names: bool, mode: AppendMode | None
) -> None:
    assert choose_mode(faults, transactions=transactions, keeps_names=keeps_names) is mode
