"""`lockstep.tracing`, at the top of a file and for all its flows."""

from .conftest import LoadText, MistakesOf


def test_tracing_is_off_by_default(load_text: LoadText) -> None:
    assert {flow.tracing for flow in load_text().flows} == {False}
    assert {flow.tracing for flow in load_text("lockstep.tracing = none\n").flows} == {False}


def test_tracing_applies_to_all_flows(load_text: LoadText) -> None:
    assert {flow.tracing for flow in load_text("lockstep.tracing = OpenTelemetry\nB->A.enabled = true\n").flows} == {
        True
    }


def test_tracing_refuses_another_value(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of("lockstep.tracing = jaeger\n")
    assert "5 lockstep.tracing" in mistake
    assert "none or opentelemetry" in mistake


def test_a_flows_own_line_has_no_effect(load_text: LoadText) -> None:
    loaded = load_text("A->B.lockstep.tracing = opentelemetry\n")
    assert [remark.key for remark in loaded.unused] == ["A->B.lockstep.tracing"]
    assert not loaded.flows[0].tracing
