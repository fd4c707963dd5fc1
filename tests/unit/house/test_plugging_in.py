"""The examples of `docs/guides/plug-in-classes.md` work as they stand there."""

import re
import sys
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_state.names import Flow

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "plug-in-classes.md"
TWO_CLUSTERS = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
MODULES = ("regions", "teams", "configs", "suffixed")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlowSettings:
    """Of a file with all of the page's lines, beside all of its modules."""
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name is not None, block
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
    lines = "".join(re.findall(r"```properties\n(.*?)```", text, re.DOTALL))
    (tmp_path / "mm2.properties").write_text(TWO_CLUSTERS + lines, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    return load(tmp_path / "mm2.properties", {}).flow(Flow("A", "B"))


def test_plugged_in_filters_select_topics_groups_and_configs(settings: FlowSettings) -> None:
    assert [topic for topic in ("eu.orders", "us.orders", "cn.orders") if settings.replicates(topic)] == [
        "eu.orders",
        "us.orders",
    ]
    assert [group for group in ("billing", "billing-test") if settings.groups.matches(group)] == ["billing"]
    names = ("retention.ms", "segment.ms")
    assert [n for n in names if settings.config_properties.should_replicate_config_property(n)] == ["retention.ms"]


def test_plugged_in_policy_names_and_reads_remote_topics(settings: FlowSettings) -> None:
    policy = settings.policy
    remote = policy.format_remote_topic("A", "eu.orders")
    assert (remote, policy.topic_source(remote), policy.original_topic(remote)) == (
        "eu.orders-from-A",
        "A",
        "eu.orders",
    )
    assert not settings.replicates("eu.orders-from-B")
    assert policy.is_heartbeats_topic("heartbeats-from-A")
