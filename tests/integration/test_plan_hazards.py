"""The hazards that `lockstep plan` finds on two real clusters, and clusters that do not answer or do not permit it."""

import json
import re
from contextlib import ExitStack
from pathlib import Path

from lockstep_config.credentials.permissions import Grant
from tests.conftest import GuardedPair
from tests.support.clusters import Record, commit_offset, create_topic, produce
from tests.support.guarded import USERS, login
from tests.support.planned_flow import FACTORS, QUIET, PlannedFlow, hazards, numbered, only_partition
from tests.support.ports import free_port
from tests.support.services import one_flow_file


def test_foreign_data_is_an_error(planned: PlannedFlow) -> None:
    topic = planned.topic(records=5)
    remote = create_topic(planned.target, f"{planned.flow.source}.{topic}")
    produce(planned.target, remote, numbered(3))
    plan = planned.only(code=1)
    assert hazards(plan)["LS003"][0].startswith(f"{remote} on {planned.flow.target} has 3 records")


def test_retention_that_is_shorter_than_the_catch_up_is_found(planned: PlannedFlow) -> None:
    topic = planned.topic(retention_ms="3600000")
    produce(planned.source, topic, numbered(1000, age_s=1800))
    slow = planned.only("--rate", "10B/s")
    assert only_partition(slow)["loses_ms"] > 0
    (detail,) = hazards(slow)["LS008"]
    assert detail.startswith(f"{topic}-0 loses ")
    assert "retention.ms is 1.0 h" in detail
    assert "LS008" not in hazards(planned.only("--rate", "10MB/s"))


def test_names_that_collide_on_the_target_are_found(planned: PlannedFlow) -> None:
    topic = planned.topic()
    create_topic(planned.target, f"{planned.flow.source}_{topic}")
    plan = planned.only(code=1)
    assert "LS004" in hazards(plan)
    assert "collides" in hazards(plan)["LS015"][0], "the target was asked, and says so too"


def test_name_that_grows_too_long_is_found(planned: PlannedFlow) -> None:
    create_topic(planned.source, f"{planned.mark}-{'t' * (248 - len(planned.mark))}")
    assert list(hazards(planned.only(code=1))) == ["LS005"]


def test_smaller_messages_and_rebuilt_topics_are_found(planned: PlannedFlow) -> None:
    planned.file.write_text(
        f"{planned.file.read_text()}config.properties.exclude = max\\\\.message\\\\.bytes\n", encoding="utf-8"
    )
    topic = planned.topic(cleanup_policy="compact", max_message_bytes="5000000")
    produce(planned.source, topic, [Record(key=b"k", value=b"v")])
    texts = hazards(planned.only())
    assert texts["LS007"][0].startswith(f"{topic} takes 5,000,000 bytes")
    assert texts["LS013"] == [f"{topic}: cleanup.policy has compact"]


def test_too_few_brokers_are_found(planned: PlannedFlow) -> None:
    planned.file.write_text(f"{planned.file.read_text()}{planned.flow}.replication.factor = 3\n")
    planned.topic()
    assert "replication.factor is 3" in hazards(planned.only())["LS006"][0]


def test_one_cluster_under_two_aliases_is_found(planned: PlannedFlow, tmp_path: Path) -> None:
    flow = planned.flow
    file = one_flow_file(tmp_path, flow, planned.mark, planned.source, planned.source, *FACTORS, *QUIET)
    plan = PlannedFlow(flow, file, planned.mark, planned.source, planned.source).only(code=1)
    assert "LS002" in hazards(plan)


# -- clusters that do not answer, or do not permit it ------------------------------------------------------------------


def test_target_that_cannot_be_reached_ends_with_one_sentence(planned: PlannedFlow) -> None:
    port = free_port()
    planned.file.write_text(planned.file.read_text().replace(planned.target, f"127.0.0.1:{port}"))
    text = planned.plan("--timeout", "1", code=3)
    assert text.startswith(f"cluster {planned.flow.target} at 127.0.0.1:{port} cannot be reached")
    assert len(text.splitlines()) == 1
    planned.plan("--timeout", "1", "--detailed-exitcode", code=1)


def test_missing_rights_have_the_command_that_grants_them(planned: PlannedFlow, pair: GuardedPair) -> None:
    topic = planned.topic(records=5)
    lines = [*login(planned.flow.source, USERS[1]), *login(planned.flow.target, USERS[1])]
    text = planned.file.read_text().replace(pair.a.bootstrap, pair.a.guarded).replace(pair.b.bootstrap, pair.b.guarded)
    planned.file.write_text(text + "\n".join(lines) + "\n")
    nothing = planned.only(code=1)
    assert nothing["rights"]
    assert all(right["command"].startswith("kafka-acls --bootstrap-server") for right in nothing["rights"])
    assert "lockstep-secret" not in json.dumps(nothing)
    assert any("shows no topic" in remark and "--operation Read" in remark for remark in nothing["remarks"])
    see = [Grant("topic", "*", "Describe", ""), Grant("topic", "*", "DescribeConfigs", "")]
    with ExitStack() as stack:
        pair.a.grant(USERS[1], see)
        stack.callback(pair.a.revoke, USERS[1], see)
        some = planned.only(code=1)
    assert some["copy"]["bytes_basis"] in ("sampled", "unknown")
    assert any("bytes are" in remark for remark in some["remarks"])
    assert (some["traffic"]["codecs"], some["traffic"]["source"]["bytes_a_day"]) == ({}, None)
    lacks = " ".join(right["lacks"] for right in some["rights"])
    assert f"lacks Read on topic {topic}" in lacks or "lacks Read on topic *" in lacks
    assert "Create on topic" in lacks


def test_selection_that_matches_nothing_is_found(planned: PlannedFlow) -> None:
    topic = planned.topic(records=5)
    commit_offset(planned.source, f"other-{planned.mark}", topic, 0, 3)
    (sentence,) = hazards(planned.only())["LS024"]
    assert re.fullmatch(rf"0 of \d+ groups of {planned.flow.source} match groups", sentence)
    planned.file.write_text(planned.file.read_text().replace(f"{planned.mark}-.*", f"NO{planned.mark}-.*"))
    (sentence,) = hazards(planned.only())["LS024"]
    assert re.fullmatch(r"0 of \d+ topics of \S+ match topics", sentence)


def test_copy_with_fewer_replicas_than_have_to_be_in_sync_is_found(planned: PlannedFlow) -> None:
    topic = planned.topic(records=5)
    remote = f"{planned.flow.source}.{topic}"
    create_topic(planned.target, remote, configs={"min.insync.replicas": "2"})
    text = f"{remote} on {planned.flow.target} has 1 replica, and min.insync.replicas is 2"
    assert hazards(planned.only())["LS025"] == [text]
