"""Values of keys, and settings whose fields are keys."""

from datetime import timedelta

import pytest

from lockstep_config.flow.connector_settings import (
    AclSyncSettings,
    AutoRestart,
    CheckpointSettings,
    HeartbeatSettings,
    TopicSyncSettings,
)
from lockstep_config.flow.model import CompressionSettings, ControlSettings, DataPlaneSettings, LegacySettings
from lockstep_config.keys.key_types import CONNECTOR, Key, ValueKind
from lockstep_config.keys.key_values import PerTopic, field_keys, parse_value
from lockstep_config.keys.lockstep_settings import CopySettings
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.text.values import BadValue

SETTINGS = (
    *(AclSyncSettings, AutoRestart, CheckpointSettings, HeartbeatSettings, TopicSyncSettings),
    *(CompressionSettings, ControlSettings, DataPlaneSettings, LegacySettings),
)


@pytest.mark.parametrize("settings", SETTINGS)
def test_keys_of_settings_are_those_of_the_table(settings: type) -> None:
    assert field_keys(settings)
    assert [key.name for key in field_keys(settings).values() if KEYS.get(key.name) is not key] == []


def test_settings_without_a_file_have_the_defaults_of_their_keys() -> None:
    plane = DataPlaneSettings()
    assert field_keys(DataPlaneSettings).items() > field_keys(CopySettings).items()
    assert plane.on_gap == PerTopic("halt")
    assert plane.start_timestamp == PerTopic(None)
    assert (plane.max_in_flight_bytes, plane.offset_lag_max, plane.tasks_max) == (67_108_864, 100, None)
    assert AclSyncSettings().every == timedelta(minutes=10)
    assert LegacySettings(group="g").commit_every == timedelta(minutes=1)


def number(name: str, minimum: int = 1) -> Key:
    return Key(name=name, kind=ValueKind.INTEGER, meaning="x", levels=CONNECTOR, minimum=minimum)


def test_a_times_unit_is_the_end_of_its_keys_name() -> None:
    assert parse_value(number("a.seconds"), " 5 ") == timedelta(seconds=5)
    assert parse_value(number("a.ms"), "5") == timedelta(milliseconds=5)
    assert parse_value(number("a.bytes"), "5") == 5


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (number("a.seconds"), "9" * 25, "is " + "9" * 25 + ", out of range: nobody waits that long"),
        (number("a.bytes"), "0", "is 0, out of range: the least it may be is 1"),
        (number("a.factor", -1), "0", "is 0, out of range: it takes a number from 1, or -1 for the broker's default"),
    ],
)
def test_number_out_of_range_is_refused(key: Key, text: str, message: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_value(key, text)
    assert str(caught.value) == message
