"""A file of settings on top of a configuration: its lines count, and are told about as theirs."""

from pathlib import Path

import pytest

from lockstep_config import ConfigurationError, load
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_config.loader.settings_file import SETTINGS_VARIABLE
from tests.support.mirror_maker_2_resources import V1

from .conftest import A_TO_B, TWO_CLUSTERS


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "lockstep.properties"


def _loaded(base: Path, text: str, settings: Path, settings_text: str):  # type: ignore[no-untyped-def]  # a Configuration
    base.write_text(text)
    settings.write_text(settings_text)
    return load(base, {SETTINGS_VARIABLE: str(settings), "RACK": "eu-1a"})


def test_settings_add_keys_to_a_resource(tmp_path: Path, settings: Path) -> None:
    more = "lockstep.spark.conf.spark.driver.memory = 300m\nA.consumer.client.rack = ${env:RACK}\n"
    loaded = _loaded(tmp_path / "mirror.yaml", V1, settings, more)
    flow = loaded.flow(A_TO_B)
    assert flow.data_plane.spark.conf == {"spark.driver.memory": "300m"}
    assert flow.clients.source_consumer["client.rack"] == "eu-1a"
    assert settings in loaded.sources.files


def test_settings_line_overrides_the_configuration_and_is_noted(tmp_path: Path, settings: Path) -> None:
    text = TWO_CLUSTERS + "A->B.tasks.max = 2\n"
    loaded = _loaded(tmp_path / "mm2.properties", text, settings, "\nA->B.tasks.max = 5\n")
    assert loaded.flow(A_TO_B).data_plane.tasks_max == 5
    assert [str(note) for note in loaded.notes] == [
        f"{settings}:2: A->B.tasks.max: counts, and not A->B.tasks.max in the configuration"
    ]


@pytest.mark.parametrize(
    ("name", "text"), [("m.json", '{"a": 1}'), ("m.json", "{,"), ("m.yaml", "a: ["), ("m.yaml", "kind: X")]
)
def test_unreadable_configuration_is_the_only_mistake_beside_settings(
    tmp_path: Path, settings: Path, name: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        _loaded(tmp_path / name, text, settings, "B.offset.storage.topic = connect-offsets\n")
    (only,) = raised.value.problems
    assert only.file == tmp_path / name


def test_mistake_in_the_settings_has_its_file_and_line(tmp_path: Path, settings: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        _loaded(
            tmp_path / "mm2.properties", TWO_CLUSTERS, settings, "A->B.tasks.max = many\nlockstep.sparc.master = x\n"
        )
    assert sorted((problem.file, problem.line) for problem in raised.value.problems) == [(settings, 1), (settings, 2)]


def test_settings_that_are_not_there_are_named(tmp_path: Path) -> None:
    base = tmp_path / "mm2.properties"
    base.write_text(TWO_CLUSTERS)
    with pytest.raises(ConfigurationError, match=r"nowhere\.properties: there is no such file"):
        load(base, {SETTINGS_VARIABLE: str(tmp_path / "nowhere.properties")})


def test_settings_override_mm1_files(tmp_path: Path, settings: Path) -> None:
    files = LegacyFiles(tmp_path / "c.properties", tmp_path / "p.properties", {"num.streams": "3"})
    files.consumer.write_text("bootstrap.servers = a:1\ngroup.id = mm1\n")
    files.producer.write_text("bootstrap.servers = b:1\n")
    settings.write_text("lockstep.spark.master = local[7]\n")
    (flow,) = load_legacy(files, {SETTINGS_VARIABLE: str(settings)}).flows
    assert flow.data_plane.spark.master == "local[7]"
