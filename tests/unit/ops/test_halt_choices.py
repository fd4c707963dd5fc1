"""What an operator can decide about a halted partition, and what each choice loses."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_ops.command_words import BY_CLICK, choice_words, command_words, scope_words, switch_words
from lockstep_ops.halt_choices import CannotDecide, HaltChoice, choose, halt_choices, offsets_request
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_steps import Verb
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.names import Flow
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.plan_facts import settings_for

FLOW = Flow("A", "B")
GAP: dict[str, Any] = {"wanted": 50, "source_start": 90, "source_end": 150, "text": "gone", "key": "lockstep.on.gap"}
LOST: dict[str, Any] = {**GAP, "source_start": 10, "target_wanted": 40, "target_end": 30}


def halted(case: str, code: ReasonCode = ReasonCode.COPY_CUT, **details: Any) -> PartitionProgress:
    cause = code.to_reason(case=case, **details)
    return PartitionProgress(topic="or.ders", partition=3, phase="halted", case=case, cause=cause, upstream=49)


def ranges(choice: HaltChoice) -> tuple[object, ...]:
    return choice.verb, choice.begin, choice.lost, choice.again, choice.gone


OWN = ("restart-from", -1, None, None, None)


@pytest.mark.parametrize(
    ("row", "choices"),
    [
        (halted("records-gone", **GAP), [("skip", 90, (50, 89), None, None), OWN]),
        (
            halted("source-recreated", **{**GAP, "source_start": 0}),
            [("restart-from", 0, None, None, None), ("skip", 150, (0, 149), None, None), OWN],
        ),
        (
            halted("target-truncated", **LOST),
            [("restart-from", 10, None, (10, 49), None), ("skip", 50, None, None, (30, 39)), OWN],
        ),
        (
            halted("target-recreated", **{**LOST, "target_end": 0}),
            [("restart-from", 10, None, None, None), ("skip", 50, None, None, (0, 39)), OWN],
        ),
        (halted("in-doubt", **LOST), [("restart-from", 50, None, (50, 149), None), OWN]),
        (halted("in-doubt", ReasonCode.COPY_END_LOST, partition="or.ders-3"), [OWN]),
        (halted("in-doubt", ReasonCode.EPOCHS_SPENT, partition="or.ders-3"), []),
        (halted("transform", ReasonCode.TRANSFORM_UNAVAILABLE, transform="t", text="x"), []),
    ],
    ids=lambda value: value.case + value.cause.code if isinstance(value, PartitionProgress) else "",
)
def test_choices_of_a_case(row: PartitionProgress, choices: list[tuple[object, ...]]) -> None:
    assert [ranges(choice) for choice in halt_choices(FLOW, row)] == choices


def test_where_the_logs_part_only_a_policy_knows() -> None:
    row = halted("source-truncated", **{**GAP, "source_start": 10, "source_end": 45})
    again, skip, own = halt_choices(FLOW, row)
    assert ranges(again) == ("restart-from", 10, None, (10, 44), None)
    assert skip.line == "A->B.lockstep.on.gap = halt, or\\\\.ders=skip", "its name is a pattern in a properties file"
    assert own.needs_offset
    with pytest.raises(CannotDecide, match="No command carries skip out") as refused:
        choose(FLOW, row, "skip")
    assert refused.value.line == skip.line


def test_refused_records_are_skipped_with_all_before_them() -> None:
    row = halted("refused", ReasonCode.RECORDS_REFUSED, text="INVALID_RECORD", first=52, last=55)
    quarantine, skip, _ = halt_choices(FLOW, row)
    assert quarantine.line == "A->B.lockstep.on.refused = halt, or\\\\.ders=quarantine"
    assert ranges(skip) == ("skip", 56, (50, 55), None, None)
    assert "that B would take" in choice_words(FLOW, row, skip).loses
    unnamed = halted("refused", ReasonCode.RECORDS_REFUSED, text="INVALID_RECORD")
    assert [choice.verb for choice in halt_choices(FLOW, unnamed)] == ["quarantine", "restart-from"]
    transformed = halted(
        "refused", ReasonCode.RECORD_NOT_TRANSFORMED, transform="mask", condition="x", fragment="", first=50, last=50
    )
    assert halt_choices(FLOW, transformed)[0].line == "lockstep.transform.mask.on.error = quarantine"


@pytest.mark.parametrize(
    ("verb", "offset", "sentence"),
    [
        ("skip", 91, "would go on at offset 90 now, not at 91"),
        ("quarantine", None, "records-gone has no choice quarantine"),
        ("restart-from", None, "name the source offset"),
        ("restart-from", -5, "-5 is no offset"),
    ],
)
def test_decision_that_no_command_carries_out_is_refused(verb: str, offset: int | None, sentence: str) -> None:
    with pytest.raises(CannotDecide, match=sentence):
        choose(FLOW, halted("records-gone", **GAP), verb, offset)


def test_partition_that_goes_on_is_not_decided() -> None:
    row = replace(halted("records-gone", **GAP), phase="copying")
    assert halt_choices(FLOW, row) == ()
    with pytest.raises(CannotDecide, match=r"or\.ders-3 is not halted"):
        choose(FLOW, row, "skip")


@pytest.mark.parametrize(
    ("offset", "lost", "again"), [(50, None, None), (60, (50, 59), None), (40, None, (40, 49)), (49, None, (49, 49))]
)
def test_own_offset_says_what_it_leaves_out_or_doubles(
    offset: int, lost: tuple[int, int] | None, again: tuple[int, int] | None
) -> None:
    choice = choose(FLOW, halted("records-gone", **GAP), "restart-from", offset)
    assert ranges(choice) == ("restart-from", offset, lost, again, None)


# -- what is asked ----------------------------------------------------------------------------------------------------


def test_offset_before_the_one_to_go_on_at_is_set() -> None:
    row = halted("records-gone", **GAP)
    request = offsets_request(settings_for(), row, choose(FLOW, row, "skip"))
    partition = {"cluster": "A", "topic": "or.ders", "partition": 3}
    assert request == {
        "offsets": [{"partition": partition, "offset": {"offset": 89}}],
        "decided": {"topic": "or.ders", "partition": 3, "before": 50, "begins": ""},
    }


def test_offset_0_is_a_reset_where_a_first_copy_begins_there() -> None:
    row = halted("source-recreated", **{**GAP, "source_start": 0})
    choice = choose(FLOW, row, "restart-from")
    earliest = settings_for("auto.offset.reset = earliest")
    assert offsets_request(earliest, row, choice)["offsets"][0]["offset"] is None
    with pytest.raises(CannotDecide, match="a first copy begins elsewhere"):
        offsets_request(settings_for("lockstep.start.timestamp = 1700000000000"), row, choice)


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", BY_CLICK)
def test_each_verb_has_words_with_its_scope(verb: str) -> None:
    words = command_words(FLOW, verb, Scope.parse("topic:orders"))
    assert "topic orders of A->B" in words.does
    assert words.confirm.endswith("topic orders of A->B?")
    assert "{" not in words.does + words.loses
    assert words.loses


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("flow", "all of A->B"),
        ("connector:MirrorSourceConnector", "the copy (topics, ACLs and records) of A->B"),
        ("slot:2", "slot 2 of A->B"),
        ("partition:orders-3", "partition orders-3 of A->B"),
        ("group:g", "group g of A->B"),
    ],
)
def test_scopes_in_words(scope: str, words: str) -> None:
    assert scope_words(FLOW, Scope.parse(scope)) == words


def test_each_choice_says_what_it_loses() -> None:
    for case, details in (("records-gone", GAP), ("source-recreated", GAP), ("target-truncated", LOST)):
        row = halted(case, **details)
        for choice in halt_choices(FLOW, row):
            words = choice_words(FLOW, row, choice)
            assert words.loses, choice
            assert "Meanwhile nothing of A->B is copied." in words.does
            assert words.confirm.endswith("partition or.ders-3 of A->B?")
    truncated = halted("target-truncated", **LOST)
    again, skip, _ = (choice_words(FLOW, truncated, choice).loses for choice in halt_choices(FLOW, truncated))
    assert again == "Records of the source's offsets 10 to 49 may be on B twice."
    assert skip == "What B had at its offsets 30 to 39 stays gone."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (SwitchOptions(verb=Verb.SWITCHOVER), "No record is lost."),
        (SwitchOptions(verb=Verb.SWITCHOVER, drill=True), "For some seconds A->B copies nothing."),
        (SwitchOptions(verb=Verb.SWITCHOVER, cutoff_ms=1), "come to A after 1970-01-01T00:00:00.001+00:00 are not"),
        (SwitchOptions(verb=Verb.FAILOVER), "No record may be lost that A was known to have."),
        (SwitchOptions(verb=Verb.FAILOVER, allowed_loss=3), "At most 3 records that A was known to have may be lost."),
        (SwitchOptions(verb=Verb.FAILBACK, diverged="leave"), "Records that only B has stay there alone."),
        (SwitchOptions(verb=Verb.SWITCHOVER, allows=frozenset({Allowance.SOON})), "in spite of: soon."),
    ],
)
def test_switch_says_what_it_loses(options: SwitchOptions, words: str) -> None:
    assert words in switch_words(FLOW, options).loses
