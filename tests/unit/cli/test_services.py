"""How the run starts its services."""

from pathlib import Path

from lockstep_cli.services import ServicePlan, arguments
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
