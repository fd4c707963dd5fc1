"""Configuration files of tests, written and loaded in one call."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lockstep_config import Configuration, ConfigurationError, FlowSettings, load
from lockstep_rules.filters import ConfigPropertyExclude, ConfigPropertyFilter, NameFilter, Names
from lockstep_state.names import Flow
from tests.support.strimzi_resources import Resources

A_TO_B = Flow("A", "B")

TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
"""Four lines that load without a remark; further lines begin at line 5."""

STRICT = {"LOCKSTEP_UNKNOWN_KEYS": "error"}
"""An environment in which each unknown key is a mistake."""

LoadText = Callable[..., Configuration]
MistakesOf = Callable[..., list[str]]


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    """Load a text; `lines` go behind `TWO_CLUSTERS` unless `whole` is given."""

    def loaded(
        lines: str = "", *, whole: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Configuration:
        path = tmp_path / "mm2.properties"
        path.write_text(TWO_CLUSTERS + lines if whole is None else whole, encoding="utf-8")
        return load(path, environment or {})

    return loaded


@pytest.fixture
def mistakes_of(load_text: LoadText) -> MistakesOf:
    """The problems of a text that must not load, each as `LINE KEY: MESSAGE`."""

    def mistakes(
        lines: str = "", *, whole: str | None = None, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        with pytest.raises(ConfigurationError) as raised:
            load_text(lines, whole=whole, environment=environment)
        return [f"{problem.line} {problem.key}: {problem.message}" for problem in raised.value.problems]

    return mistakes


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    """A folder with one resource of Strimzi's and the secrets that it names."""
    return Resources(tmp_path)


def ab(load_text: LoadText, lines: str = "") -> FlowSettings:
    """Return the settings of the flow A->B in a file with these lines."""
    return load_text(lines).flow(A_TO_B)


def only(configuration: Configuration) -> FlowSettings:
    """Return the settings of the one flow of a file."""
    (settings,) = configuration.flows
    return settings


def patterns(names: Names) -> NameFilter:
    """MM2's own filter, which holds patterns."""
    assert isinstance(names, NameFilter)
    return names


def excluded(configs: ConfigPropertyFilter) -> ConfigPropertyExclude:
    """The same of topic configs."""
    assert isinstance(configs, ConfigPropertyExclude)
    return configs
