"""A state topic that was deleted and created again between two sessions."""

import pytest

from lockstep_runtime.membership.session_watch import is_another_state


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
