"""Services that `lockstep run` starts."""

from pathlib import Path

import pytest

from lockstep_ops.services import ProcessPlan, ServicePlan, plan_processes, process_arguments
from lockstep_runtime.http.access import AccessPolicy
from lockstep_state.names import Flow

THERE, BACK = Flow("A", "B"), Flow("B", "A")
PLANE, TOPICS, BEATS = (
    ServicePlan("data-plane", (THERE,)),
    ServicePlan("topic-sync", (THERE,)),
    ServicePlan("heartbeat", (THERE, BACK)),
)
CONFIG = ["--config", "/mm2.properties"]


def words(process: ProcessPlan, access: AccessPolicy) -> list[str]:
    return list(process_arguments(process, config=CONFIG, instance="one", access=access, debug=False))


def test_service_arguments_have_host_and_tls_a_free_port_and_no_token() -> None:
    process = ProcessPlan("acl-sync", (ServicePlan("acl-sync", (THERE,)),))
    text = " ".join(words(process, AccessPolicy("0.0.0.0", 0, Path("/tls/crt"), Path("/tls/key"), None, "s3cret")))
    assert text.startswith("lockstep_acl_sync --config /mm2.properties --flow A->B --instance one ")
    assert "--host 0.0.0.0 --port 0 --tls-cert /tls/crt --tls-key /tls/key --log-level" in text
    assert "s3cret" not in text
    assert not any(word.startswith(("--tls", "--token")) for word in words(process, AccessPolicy()))


def test_shared_process_is_given_its_services_and_every_flow_once() -> None:
    command_line = words(ProcessPlan("control-services", (TOPICS, BEATS)), AccessPolicy())
    assert command_line[:3] == [
        "lockstep_runtime.service.shared_process",
        "--service=lockstep_topic_sync",
        "--service=lockstep_heartbeat",
    ]
    assert command_line[3:9] == [*CONFIG, "--flow", "A->B", "--flow", "B->A"]


@pytest.mark.parametrize(
    ("services", "apart", "processes"),
    [
        ((PLANE, TOPICS, BEATS), False, {"data-plane": (PLANE,), "control-services": (TOPICS, BEATS)}),
        ((PLANE, TOPICS, BEATS), True, {"data-plane": (PLANE,), "topic-sync": (TOPICS,), "heartbeat": (BEATS,)}),
        ((PLANE, BEATS), False, {"data-plane": (PLANE,), "heartbeat": (BEATS,)}),
        ((BEATS,), False, {"heartbeat": (BEATS,)}),
    ],
)
def test_all_services_but_the_data_plane_share_a_process(
    services: tuple[ServicePlan, ...], apart: bool, processes: dict[str, tuple[ServicePlan, ...]]
) -> None:
    started = plan_processes(services, apart=apart)
    assert {process.name: process.services for process in started} == processes
    assert [process.name for process in started] == list(processes)
