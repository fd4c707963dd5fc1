"""Control topics that were deleted and created again between two checks."""

import pytest

from lockstep_runtime.membership.life_watch import replaced_topics


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
