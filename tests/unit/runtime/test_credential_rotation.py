"""Files of a configuration that change while somebody runs with it: what is said, and what is taken up."""

import logging
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_config.flow.client_settings import connections
from lockstep_config.resolve.precedence import Side
from lockstep_runtime.flow import credential_rotation
from lockstep_runtime.flow.credential_rotation import CredentialRotation
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.names import Flow

A_TO_B = Flow("A", "B")
TEXT = """clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
security.protocol = SASL_PLAINTEXT
sasl.mechanism = PLAIN
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
"""
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Flows:
    """A flow that is renewed, brokers that know some passwords, and the files."""

    flow = A_TO_B

    def __init__(self, folder: Path) -> None:
        self.file = folder / "mm2.properties"
        self.secrets = folder / "secrets.properties"
        self.passwords("a1", "b1")
        self.lines("")
        self.known = {"a1", "b1"}
        self.renewed: list[FlowSettings] = []
        self.tried: list[str] = []
        configuration = load(self.file, {})
        self.rotation = CredentialRotation(
            configuration,
            lambda: load(self.file, {}),
            [self],
            {A_TO_B: configuration.flow(A_TO_B)},
            FlowLog("heartbeat", ""),
            self.unusable,
        )

    def passwords(self, a: str, b: str) -> None:
        self.secrets.write_text(f"a={a}\nb={b}\n")

    def lines(self, more: str) -> None:
        own = (
            f'{x.upper()}.sasl.jaas.config = {JAAS} username="u" password="${{file:{self.secrets}:{x}}}";\n'
            for x in "ab"
        )
        self.file.write_text(TEXT + "".join(own) + more)

    async def renew(self, settings: FlowSettings) -> None:
        self.renewed.append(settings)

    async def unusable(self, alias: str, settings: FlowSettings, side: Side) -> str:
        passwords = {conf["sasl.password"] for conf in connections(settings, side)}
        self.tried += passwords
        return "" if passwords <= self.known else f"cluster {alias} does not know us ({len(self.tried)})"

    async def run_checks(self, times: int = 3) -> None:
        for _ in range(times):
            await self.rotation.check()

    @property
    def uses(self) -> list[str]:
        """The passwords in use: for A, for B."""
        conf = [self.renewed[-1].clients.source_admin, self.renewed[-1].clients.target_admin]
        return [properties["sasl.jaas.config"].split('"')[3] for properties in conf]


@pytest.fixture
def flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flows:
    monkeypatch.setattr(credential_rotation, "CHECK_INTERVAL_S", 0.001)
    return Flows(tmp_path)


async def test_rotation_without_a_change_does_nothing(flows: Flows, caplog: pytest.LogCaptureFixture) -> None:
    await flows.run_checks(5)
    assert (flows.renewed, flows.tried, caplog.messages) == ([], [], [])
    assert flows.rotation.status() == {"credentials_renewed_ms": 0, "not_taken_up": [], "restart_needed_for": []}


async def test_accepted_password_is_renewed_after_two_equal_reads(flows: Flows) -> None:
    flows.known |= {"b2"}
    await flows.run_checks()
    flows.passwords("a1", "b2")
    await flows.run_checks(1)
    assert flows.renewed == []
    await flows.run_checks()
    assert len(flows.renewed) == 1
    assert flows.uses == ["a1", "b2"]
    assert flows.rotation.status()["credentials_renewed_ms"] > 0


async def test_password_not_accepted_yet_waits_while_the_former_one_is_used(
    flows: Flows, caplog: pytest.LogCaptureFixture
) -> None:
    flows.passwords("a1", "b2")
    await flows.run_checks(6)
    assert flows.renewed == []
    assert caplog.messages == ["credentials not taken up"]
    (refusal,) = flows.rotation.status()["not_taken_up"]
    assert refusal.startswith("cluster B does not know us")  # each time in other words, and said once
    flows.known |= {"b2"}
    flows.rotation._not_before = 0.0
    await flows.run_checks(1)
    assert flows.uses == ["a1", "b2"]
    assert flows.rotation.status()["not_taken_up"] == []


async def test_each_cluster_is_taken_up_by_itself(flows: Flows) -> None:
    flows.known |= {"a2"}
    flows.passwords("a2", "b2")
    await flows.run_checks()
    assert flows.uses == ["a2", "b1"]
    flows.known |= {"b2"}
    flows.rotation._not_before = 0.0
    await flows.run_checks()
    assert flows.uses == ["a2", "b2"]
    assert len(flows.renewed) == 2


async def test_password_changed_back_before_its_renewal_is_forgotten(flows: Flows) -> None:
    flows.passwords("a1", "b2")
    await flows.run_checks()
    flows.passwords("a1", "b1")
    await flows.run_checks()
    assert flows.renewed == []
    assert flows.rotation.status()["not_taken_up"] == []


async def test_change_that_needs_a_restart_is_logged_once_and_renewals_continue(
    flows: Flows, caplog: pytest.LogCaptureFixture
) -> None:
    flows.known |= {"b2"}
    flows.lines("A->B.topics = other\ntasks.max = 7\n")
    await flows.run_checks(5)
    assert caplog.messages == ["restart needed"]
    assert "A->B.topics, tasks.max changed in" in caplog.records[0].__dict__["text"]
    assert flows.rotation.status()["restart_needed_for"] == ["A->B.topics", "tasks.max"]
    assert flows.renewed == []
    flows.passwords("a1", "b2")
    await flows.run_checks()
    assert flows.uses == ["a1", "b2"]
    assert flows.renewed[0].topics.matches("anything")  # not taken up
    flows.lines("")
    await flows.run_checks()
    assert flows.rotation.status()["restart_needed_for"] == []


async def test_broken_file_changes_nothing_and_is_logged_once_if_it_stays(
    flows: Flows, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows.lines("topcs = x\nA->B.topics = [\n")
    await flows.run_checks(4)
    assert caplog.messages == []
    monkeypatch.setattr(credential_rotation, "LOGGED_AFTER_S", 0.0)
    await flows.run_checks(4)
    assert caplog.messages == ["changed configuration not taken up"]
    text = caplog.records[0].__dict__["text"]
    assert "topcs" in text
    assert "A->B.topics" in text
    assert len(flows.rotation.status()["not_taken_up"]) == 1
    flows.lines("")
    caplog.set_level(logging.INFO)
    await flows.run_checks(4)
    assert caplog.messages[1:] == ["changed configuration can be read again"]
    assert flows.renewed == []
    assert flows.rotation.status()["not_taken_up"] == []


async def test_a_file_that_is_away_for_a_moment_is_waited_for(flows: Flows, caplog: pytest.LogCaptureFixture) -> None:
    flows.known |= {"b2"}
    flows.secrets.unlink()
    await flows.run_checks(4)
    assert caplog.messages == []
    flows.passwords("a1", "b2")
    await flows.run_checks()
    assert flows.uses == ["a1", "b2"]


async def test_rotation_watches_a_new_file_from_then_on(flows: Flows, tmp_path: Path) -> None:
    flows.known |= {"b2", "b3"}
    flows.secrets = tmp_path / "moved.properties"
    flows.passwords("a1", "b2")
    flows.lines("")
    await flows.run_checks()
    assert flows.uses == ["a1", "b2"]
    flows.passwords("a1", "b3")
    await flows.run_checks()
    assert flows.uses == ["a1", "b3"]


async def test_rotation_log_lines_have_no_secret(flows: Flows, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    flows.passwords("hunter-a", "hunter-b")
    await flows.run_checks()
    flows.known |= {"hunter-a", "hunter-b"}
    flows.rotation._not_before = 0.0
    await flows.run_checks()
    assert flows.uses == ["hunter-a", "hunter-b"]
    lines = "".join(str(record.__dict__) for record in caplog.records)
    assert "hunter" not in lines + repr(flows.rotation.status())
