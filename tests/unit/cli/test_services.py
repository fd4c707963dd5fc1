"""How the run starts its services."""

import inspect
from pathlib import Path

from lockstep_cli.services import DATA_PLANE, SERVICES, SPARK_READY, TOGETHER, ServicePlan, arguments, is_under_way
from lockstep_data_plane.driver import driver
from lockstep_protocol.names import Flow
from lockstep_runtime.http.access import AccessPolicy


def test_service_arguments_have_host_and_tls_a_free_port_and_no_token() -> None:
    plan = ServicePlan("acl-sync", (Flow("A", "B"),))
    access = AccessPolicy("0.0.0.0", 0, Path("/tls/crt"), Path("/tls/key"), None, "s3cret")
    words = arguments(plan, config=["--config", "/mm2.properties"], instance="one", access=access, debug=False)
    text = " ".join(words)
    assert "--host 0.0.0.0 --port 0 --tls-cert /tls/crt --tls-key /tls/key --log-level" in text
    assert "s3cret" not in text
    plain = arguments(plan, config=["--config", "/mm2.properties"], instance="one", access=AccessPolicy(), debug=False)
    assert not any(word.startswith(("--tls", "--token")) for word in plain)


def test_data_plane_is_under_way_once_spark_is_ready() -> None:
    assert f'ctx.log.info("{SPARK_READY}"' in inspect.getsource(driver)
    assert is_under_way(DATA_PLANE, SPARK_READY)
    assert not is_under_way(DATA_PLANE, "started")
    assert is_under_way("topic-sync", "started")


def test_topic_sync_starts_together_with_the_data_plane() -> None:
    assert list(SERVICES)[:2] == [DATA_PLANE, *TOGETHER]
