"""The steps of a start, from a log of JSON lines."""

from tools.demo.timeline import StartStep, as_text, read_steps

LOG = """\
{"at": "2026-11-26T12:00:00.000+00:00", "level": "info", "service": "run", "message": "a:1 to b:1: topic-sync"}
not a line of the log
{"at": "2026-11-26T12:00:03.250Z", "level": "info", "service": "data-plane", "message": "spark ready", "flow": "A->B"}
{"at": "2026-11-26T12:00:01.500Z", "level": "info", "service": "topic-sync", "message": "started", "text": "A->B as x"}
{"at": "2026-11-26T12:00:02.000Z", "level": "info", "service": "topic-sync", "message": "topic left out"}
{"at": "2026-11-26T12:00:04.000Z", "level": "info", "service": "data-plane", "message": "spark ready", "flow": "A->B"}
{"at": "2026-11-26T12:00:04.000Z", "level": "info", "service": "data-plane", "message": "spark ready", "flow": "B->A"}
[1, 2]
"""


def test_steps_are_the_first_of_their_kind_in_the_order_of_time() -> None:
    assert read_steps(LOG.splitlines()) == [
        StartStep(1.5, "topic-sync", "", "started", "A->B as x"),
        StartStep(3.25, "data-plane", "A->B", "spark ready"),
        StartStep(4.0, "data-plane", "B->A", "spark ready"),
    ]


def test_a_step_is_a_line_with_its_seconds() -> None:
    first, second, _ = as_text(read_steps(LOG.splitlines())).splitlines()
    assert first == "   1.50 s  topic-sync          started  A->B as x"
    assert second == "   3.25 s  data-plane  A->B    spark ready"
