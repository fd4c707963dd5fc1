"""Which logs of the source a plan reads a sample of."""

from lockstep_ops.plan.record_sampler import SAMPLED_TOPICS, choose_logs
from tests.support.plan_facts import log


def test_fullest_partition_of_each_topic_is_sampled() -> None:
    logs = {("a", 0): log(5), ("a", 1): log(50), ("b", 0): log(500), ("empty", 0): log(0)}
    assert choose_logs(logs) == [("b", 0), ("a", 1)]


def test_sample_of_many_topics_is_bounded() -> None:
    logs = {(f"t{number}", 0): log(number + 1) for number in range(SAMPLED_TOPICS + 50)}
    chosen = choose_logs(logs)
    assert len(chosen) == SAMPLED_TOPICS
    assert chosen[0] == (f"t{SAMPLED_TOPICS + 49}", 0)
