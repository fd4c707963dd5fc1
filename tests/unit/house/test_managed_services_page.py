"""The files of `docs/guides/managed-services.md` are whole, and `lockstep config check` has nothing against them."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from lockstep_cli.__main__ import main
from lockstep_config import load
from lockstep_rules.clusters.cluster_kind import ClusterKind, guess_cluster_kind

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "managed-services.md"
SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"```properties\n(.*?)```", re.DOTALL)
FILES = {title: block for title, text in SECTION.findall(PAGE.read_text("utf-8")) for block in BLOCK.findall(text)}
SECRETS = {
    **{"API_KEY": "KEY", "API_SECRET": "qF8v-secret", "PASSWORD": "x7-secret"},
    "CONNECTION_STRING": "Endpoint=sb://namespace.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=Zm9v",
}
KINDS = {
    "Confluent Cloud": ClusterKind.CONFLUENT_CLOUD,
    "Amazon MSK": ClusterKind.MSK_SERVERLESS,
    "Azure Event Hubs": ClusterKind.EVENT_HUBS,
    "Redpanda": ClusterKind.REDPANDA,
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def test_page_has_a_file_for_each_service() -> None:
    assert list(FILES) == list(KINDS)


@pytest.mark.parametrize("service", FILES)
def test_file_of_a_service_passes_config_check_without_a_warning(service: str, tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(FILES[service], encoding="utf-8")
    result = CliRunner().invoke(main, ["config", "check", str(file)])
    assert result.exit_code == 0, result.output
    assert "warning" not in result.output.lower(), result.output


@pytest.mark.parametrize("service", FILES)
def test_cluster_of_a_file_is_known_by_its_address(service: str, tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(FILES[service], encoding="utf-8")
    (flow,) = [flow for flow in load(file, SECRETS).flows if flow.enabled]
    clients = flow.clients
    addresses = [properties["bootstrap.servers"] for properties in (clients.source_admin, clients.target_admin)]
    kinds = {guess_cluster_kind({}, hosts=[address.rpartition(":")[0]]) for address in addresses}
    assert KINDS[service] in kinds
