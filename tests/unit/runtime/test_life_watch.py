"""Control topics that were deleted and created again between two checks."""

import pytest

from lockstep_runtime.membership.life_watch import is_another_state, replaced_topics


@pytest.mark.parametrize(
    ("known", "ids", "replaced"),
    [
        ({}, {"t": "1"}, set()),
        ({"t": "1"}, {"t": "1"}, set()),
        ({"t": "1"}, {}, set()),
        ({"t": "1"}, {"t": "2"}, {"t"}),
        ({"t": "1", "u": "3"}, {"t": "2", "u": "3"}, {"t"}),
        ({"t": ""}, {"t": "2"}, set()),
        ({"t": "1"}, {"t": ""}, set()),
    ],
)
def test_topic_with_another_id_is_replaced(known: dict[str, str], ids: dict[str, str], replaced: set[str]) -> None:
    assert replaced_topics(known, ids) == replaced


@pytest.mark.parametrize(
    ("former", "present", "is_new", "expected"),
    [
        (("", ""), ("c", "1"), True, False),
        (("c", "1"), ("c", "1"), False, False),
        (("c", "1"), ("c", "2"), False, True),
        (("c", ""), ("c", "2"), False, False),
        (("c", "1"), ("c", ""), False, False),
        (("c", ""), ("c", ""), True, True),
        (("c", "1"), ("d", "2"), True, False),
    ],
)
def test_state_topic_with_an_unknown_id_is_another_one_only_if_new(
    former: tuple[str, str], present: tuple[str, str], is_new: bool, expected: bool
) -> None:
    assert is_another_state(former, present, is_new=is_new) is expected
