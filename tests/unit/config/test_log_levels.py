"""Log levels: from our own keys, from a resource's inline loggers, from a ConfigMap with a log4j configuration."""

from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_config.keys.log_levels import LOGGING_VARIABLE, LogLevels, log4j_levels
from tests.support.mirror_maker_2_resources import V1
from tests.support.strimzi_resources import Resources
from tests.unit.config.conftest import LoadText, MistakesOf

MIRROR = "org.apache.kafka.connect.mirror"


@pytest.mark.parametrize(
    ("properties", "root"),
    [
        ({"connect.root.logger.level": "DEBUG"}, "debug"),
        ({"mirrormaker.root.logger": "ERROR"}, "error"),
        ({"log4j.rootLogger": "WARN, CONSOLE"}, "warning"),
        ({"connect.root.logger.level": "TRACE", "log4j.rootLogger": "${connect.root.logger.level}, CONSOLE"}, "debug"),
        ({"rootLogger": "OFF, STDOUT"}, "critical"),
        ({"rootLogger.level": "FATAL", "appender.console.type": "Console"}, "critical"),
        ({}, ""),
    ],
)
def test_the_roots_level_in_every_form(properties: dict[str, str], root: str) -> None:
    levels, unknown, wrong = log4j_levels(properties)
    assert (levels.root, unknown, wrong) == (root, (), ())
    assert levels.level("heartbeat") == (root or "info")


def test_log4j_loggers_map_to_services_and_unknown_ones_are_named() -> None:
    levels, unknown, wrong = log4j_levels(
        {
            "log4j.logger.org.apache.kafka.connect.mirror": "WARN",
            f"log4j.logger.{MIRROR}.MirrorSourceTask": "DEBUG, X",
            "logger.checkpoint.name": f"{MIRROR}.MirrorCheckpointTask",
            "logger.checkpoint.level": "ERROR",
            "log4j.logger.org.reflections": "ERROR",
            "log4j.rootLogger": "LOUD",
        }
    )
    assert [levels.level(service) for service in ("data-plane", "checkpoint", "topic-sync")] == [
        "debug",
        "error",
        "warning",
    ]
    assert (unknown, wrong) == (("org.reflections",), ("log4j.rootLogger",))


def test_a_placeholder_that_names_itself_is_no_level() -> None:
    assert log4j_levels({"connect.root.logger.level": "${connect.root.logger.level}"}) == (
        LogLevels(),
        (),
        ("connect.root.logger.level",),
    )


def test_log_level_keys_of_lockstep(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    log = load_text("lockstep.log.level = WARN\nlockstep.log.level.acl-sync = debug\n").log
    assert [log.level(service) for service in ("acl-sync", "data-plane")] == ["debug", "warning"]
    (mistake,) = mistakes_of("lockstep.log.level = loud\n")
    assert mistake.startswith("5 lockstep.log.level: is 'loud': it takes off, fatal, error")


INLINE = """\
  logging:
    type: inline
    loggers:
      connect.root.logger.level: %s
      log4j.logger.org.apache.kafka.connect.mirror.MirrorSourceConnector: TRACE
      log4j.logger.org.reflections: ERROR
"""
EXTERNAL = """\
  logging:
    type: external
    valueFrom:
      configMapKeyRef: {name: my-logging, key: log4j2.properties}
"""


def test_a_resources_inline_loggers(tmp_path: Path) -> None:
    resources = Resources(tmp_path)
    log = resources.load(V1 + INLINE % "ERROR").log
    assert [log.level(service) for service in ("topic-sync", "acl-sync", "data-plane")] == ["debug", "debug", "error"]
    remarks = [remark for remark in resources.remarks(V1 + INLINE % "ERROR") if "logging" in remark]
    assert remarks == ["19 spec.logging.loggers: has no effect: no logger here is called org.reflections"]
    (mistake,) = resources.mistakes(V1 + INLINE % "loud")
    assert mistake.startswith("20 spec.logging.loggers.connect.root.logger.level: is 'loud': it takes off")


def test_a_config_map_with_a_log4j_configuration(tmp_path: Path) -> None:
    resources = Resources(tmp_path)
    folder = tmp_path / "logging" / "my-logging"
    folder.mkdir(parents=True)
    (folder / "log4j2.properties").write_text("rootLogger.level = DEBUG\n")
    resources.file.write_text(V1 + EXTERNAL)
    loaded = load(resources.file, {LOGGING_VARIABLE: str(tmp_path / "logging")})
    assert loaded.log.level("data-plane") == "debug"
    # Beside the secrets it is found without further ado; and where it is not there, mirroring goes on.
    resources.secret("my-logging", log4j2__properties="rootLogger.level = WARN\n")
    assert resources.load(V1 + EXTERNAL).log.level("data-plane") == "warning"
    (resources.secrets / "my-logging" / "log4j2.properties").unlink()
    assert resources.load(V1 + EXTERNAL).log.level("data-plane") == "info"
    assert "cannot be read (No such file" in resources.remarked(V1 + EXTERNAL)


def test_an_external_logging_without_a_name_is_a_mistake(tmp_path: Path) -> None:
    text = V1 + "  logging: {type: external}\n"
    assert Resources(tmp_path).mistakes(text) == [
        "17 spec.logging: names no ConfigMap: write valueFrom.configMapKeyRef with name and key"
    ]
