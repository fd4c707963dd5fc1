"""Hazards of topics that a cluster creates otherwise than wanted, or not at all."""

from lockstep_ops.plan.rules.flow_facts import ControlTopicFacts
from lockstep_ops.plan.rules.flow_plan import ERROR, NOTE, WARNING
from tests.unit.ops.plan.test_hazards import hazards, plain


def test_configs_that_the_target_refuses_are_found() -> None:
    hazards_by_code = hazards(plain(refused_configs={"A.orders": {"flush.ms": "unknown key"}}))
    assert (hazards_by_code["LS016"].severity, hazards_by_code["LS016"].details) == (
        WARNING,
        ("A.orders: flush.ms (unknown key)",),
    )
    assert "LS026" not in hazards_by_code


def test_refused_config_of_a_control_topic_is_a_note_of_its_own() -> None:
    state = ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, 1)
    hazards_by_code = hazards(
        plain(control_topics=(state,), refused_configs={state.name: {"segment.bytes": "too small"}})
    )
    assert "LS016" not in hazards_by_code
    assert (hazards_by_code["LS026"].severity, hazards_by_code["LS026"].details) == (
        NOTE,
        ("mm2-lockstep-state.A.internal on B is created without segment.bytes (too small)",),
    )


def test_control_topic_that_a_cluster_refuses_keeps_the_flow_from_starting() -> None:
    state = ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, 1)
    hazard = hazards(plain(control_topics=(state,), refused={state.name: "no compaction"}))["LS015"]
    assert hazard.severity == ERROR
    assert "without which the flow does not start: no compaction" in hazard.details[0]


def test_replication_factor_that_a_cluster_demands_is_found() -> None:
    hazard = hazards(plain(factors={"A.orders": 3, "A.payments": -1}))["LS027"]
    assert hazard.details == ("A.orders: B takes a replication factor of 3", "A.payments: B takes its own default")
