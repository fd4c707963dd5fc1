"""Status says why a partition halted whose transform was refused before anything of it was copied."""

from lockstep_ops.status.refused_transforms import refused_transforms
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import MirroredTopic, Row, Transform
from tests.support.plan_facts import settings_for

LINES = (
    "lockstep.transform.a.topics = ord.*",
    "lockstep.transform.a.python = gone:f",
    "lockstep.transform.b.topics = .*[0-9]",
    "lockstep.transform.b.mask = $.x: mask",
    "lockstep.filter = tombstone and topic .*ruled[0-9]",
)


def test_each_topic_whose_transform_is_refused_has_its_reason() -> None:
    settings = settings_for("\n".join(LINES))
    topics = [MirroredTopic(source_topic=name, target_topic=name) for name in ("ord", "ord1", "ruled1", "fine1", "t")]
    rows: list[Row] = [*topics, Transform(name="a", refused="gone cannot be imported"), Transform(name="b")]
    reasons = refused_transforms(settings, {row.key(): row for row in rows})
    sentences = {topic: format_sentence(reason) for topic, reason in reasons.items()}
    assert sentences.keys() == {"ord", "ord1", "ruled1"}
    assert "the transform a: gone cannot be imported." in sentences["ord"]
    assert "the transforms a and b both select ord1" in sentences["ord1"]
    assert "lockstep.filter or lockstep.headers holds for it too" in sentences["ruled1"]
