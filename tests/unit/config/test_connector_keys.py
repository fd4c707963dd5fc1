"""`SOURCE->TARGET.lockstep.connector.NAME.KEY`: what a connector has for itself, in a properties file."""

from datetime import timedelta

import pytest

from lockstep_config.flow.connector_settings import AutoRestart, StatedPhase, StatedPhases
from lockstep_config.keys.connector_keys import CONNECTORS, OWN_KEYS, connector_name, connectors_reading
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_ops.services import plan_services
from lockstep_state.commands.command_vocabulary import Connector

from .conftest import LoadText, MistakesOf, ab

OWN = "A->B.lockstep.connector."


def test_each_connector_has_a_name() -> None:
    assert tuple(connector_name(connector) for connector in Connector) == CONNECTORS


def test_the_tables_know_only_keys_that_there_are() -> None:
    assert set(OWN_KEYS) <= set(KEYS)
    assert connectors_reading("replication.factor") == ("source",)
    assert connectors_reading("replication.policy.class") == CONNECTORS


def test_a_connectors_own_line_beats_the_flows_and_the_files(load_text: LoadText) -> None:
    settings = ab(
        load_text,
        "tasks.max=1\nA->B.tasks.max=2\n"
        f"{OWN}source.tasks.max=3\n{OWN}checkpoint.admin.timeout.ms=1000\nadmin.timeout.ms=5000\n",
    )
    assert (settings.data_plane.tasks_max, settings.checkpoint.tasks_max) == (3, 2)
    assert settings.admin_timeout == timedelta(seconds=5)
    assert settings.as_seen_by("checkpoint").admin_timeout == timedelta(seconds=1)


def test_restarts_are_each_connectors_own(load_text: LoadText) -> None:
    settings = ab(
        load_text,
        f"A->B.lockstep.auto.restart.max=3\n{OWN}source.lockstep.auto.restart.max=5\n"
        f"{OWN}heartbeat.lockstep.auto.restart.enabled=false\n",
    )
    assert settings.auto_restart.source == AutoRestart(enabled=True, max_restarts=5)
    assert settings.auto_restart.checkpoint == AutoRestart(enabled=True, max_restarts=3)
    assert not settings.auto_restart.heartbeat.enabled


def test_a_connector_may_be_left_out(load_text: LoadText) -> None:
    settings = ab(load_text, f"{OWN}source.enabled=false\n{OWN}heartbeat.enabled=false\n")
    assert settings.enabled
    assert not settings.data_plane.enabled
    assert not settings.acl_sync.enabled
    assert settings.checkpoint.enabled
    assert not settings.heartbeat.enabled
    assert not ab(load_text, f"{OWN}checkpoint.enabled=false\n").checkpoint.enabled


@pytest.mark.parametrize(
    ("absent", "services"),
    [
        ("source", ["checkpoint", "heartbeat"]),
        ("checkpoint", ["data-plane", "topic-sync", "acl-sync", "heartbeat"]),
        ("heartbeat", ["data-plane", "topic-sync", "acl-sync", "checkpoint"]),
    ],
)
def test_service_of_an_absent_connector_does_not_run(load_text: LoadText, absent: str, services: list[str]) -> None:
    loaded = load_text(f"{OWN}{absent}.enabled=false\nB->A.emit.heartbeats.enabled=false\n")
    assert [plan.name for plan in plan_services(loaded)] == services


def test_clients_of_one_connector(load_text: LoadText) -> None:
    settings = ab(
        load_text,
        "A->B.consumer.request.timeout.ms=1000\n"
        f"{OWN}checkpoint.consumer.request.timeout.ms=2000\n"
        f"{OWN}checkpoint.source.consumer.fetch.min.bytes=3\n"
        f"{OWN}heartbeat.producer.override.request.timeout.ms=4000\n"
        f"{OWN}source.producer.override.compression.type=zstd\n",
    )
    assert settings.clients.source_consumer["request.timeout.ms"] == "1000"
    assert settings.data_plane.compression_type == "zstd"
    assert "compression.type" not in settings.clients.target_producer, "it is the mirrored records' alone"
    checkpoint = settings.as_seen_by("checkpoint").clients
    assert checkpoint.source_consumer["request.timeout.ms"] == "2000"
    assert (checkpoint.source_consumer["fetch.min.bytes"], "fetch.min.bytes" in checkpoint.target_consumer) == (
        "3",
        False,
    )
    assert settings.as_seen_by("heartbeat").clients.target_producer["request.timeout.ms"] == "4000"
    assert settings.as_seen_by("source") is settings


@pytest.mark.parametrize(
    ("lines", "states"),
    [
        ("", StatedPhases()),
        ("lockstep.state=running\n", StatedPhases()),
        (
            "A->B.lockstep.state=paused\n",
            StatedPhases(**dict.fromkeys(CONNECTORS, StatedPhase(phase="paused", key="A->B.lockstep.state"))),
        ),
        (
            f"A->B.lockstep.state=stopped\n{OWN}heartbeat.lockstep.state=running\n",
            StatedPhases(**dict.fromkeys(CONNECTORS[:2], StatedPhase(phase="stopped", key="A->B.lockstep.state"))),
        ),
        (
            f"{OWN}source.lockstep.state=PAUSED\n",
            StatedPhases(source=StatedPhase(phase="paused", key=f"{OWN}source.lockstep.state")),
        ),
    ],
)
def test_state_of_a_connector_is_read_from_its_key(load_text: LoadText, lines: str, states: StatedPhases) -> None:
    phases = ab(load_text, lines).states
    for name in CONNECTORS:
        stated, wanted = getattr(phases, name), getattr(states, name)
        assert (stated.phase if stated else None) == (wanted.phase if wanted else None)
        if stated:
            assert stated.key.endswith(f"mm2.properties:5: {wanted.key}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{OWN}sink.tasks.max=1", "names the connector 'sink': there are source, checkpoint, heartbeat"),
        (f"{OWN}source.task.max=1", "is no key that MirrorMaker or Lockstep knows; did you mean A->B.lockstep."),
        (f"{OWN}source.tasks.max=none", "is 'none', which is no whole number"),
        (f"{OWN}source.lockstep.state=resting", "is 'resting': it takes running, paused or stopped"),
        (f"{OWN}checkpoint.replication.policy.class=x", "is no key of one connector alone: write A->B.replication."),
        (f"{OWN}source.consumer.fetch.min.bite=1", f"did you mean {OWN}source.consumer.fetch.min.bytes"),
        (f"{OWN}source.producer.override.interceptor.classes=x", "is 'x', which is refused"),
        ("lockstep.connector.source.tasks.max=1", "is about a connector of a flow: write SOURCE->TARGET.lockstep.conn"),
        (f"{OWN}source=1", "is no key that MirrorMaker or Lockstep knows"),
    ],
)
def test_mistake_in_a_connector_key_is_refused(mistakes_of: MistakesOf, line: str, said: str) -> None:
    mistakes = mistakes_of(line + "\n")
    assert any(said in mistake for mistake in mistakes), mistakes


def test_a_key_that_the_connector_does_not_have_changes_nothing(load_text: LoadText) -> None:
    (unused,) = load_text(f"{OWN}heartbeat.tasks.max=2\n").unused
    assert unused.message == "has no effect: the heartbeat connector has no tasks.max"
