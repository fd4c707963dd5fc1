"""What becomes of topics on a cluster that refuses some of their configs, or their replication factor."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.topic_creation import Creation, create_fitting_topics
from lockstep_kafka.common.admin_types import NewTopic, Outcome
from lockstep_kafka.common.errors import RequestRefused
from lockstep_kafka.topics.control_topics import ControlTopic, ensure_control_topics
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

KEPT = frozenset({"cleanup.policy"})
WANTED = {"cleanup.policy": "compact", "segment.bytes": "1", "segment.index.bytes": "2"}


class Restricted(Admin):
    """A cluster that refuses some configs, pairs of them, or replication factors, each with Kafka's code."""

    def __init__(
        self,
        *,
        refuses: Mapping[str, Code] | None = None,
        apart: Collection[str] = (),
        factors: Mapping[int, Code] | None = None,
        brokers: int = 3,
        live: int = 3,
    ) -> None:
        super().__init__("T", {"bootstrap.servers": "t:9092"})
        self.refuses, self.apart, self.factors = refuses or {}, frozenset(apart), factors or {}
        self.brokers, self.live = brokers, live
        self.there: dict[str, NewTopic] = {}
        self.requests = 0
        self.passing: dict[int, Code] = {}
        """What the request of this number is answered with, whatever it asks."""

    async def topic_names(self) -> dict[str, int]:
        return {name: topic.partitions for name, topic in self.there.items()}

    async def broker_count(self) -> int:
        return self.brokers

    async def live_broker_count(self) -> int:
        return self.live

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Outcome[None]:
        self.requests += 1
        outcome: Outcome[None] = Outcome()
        for topic in topics:
            if (code := self._judge(topic)) is None:
                outcome.done[topic.name] = None
                self.there |= {} if validate_only else {topic.name: topic}
            else:
                outcome.failed[topic.name] = RequestRefused("T", "create", topic.name, code, f"no: {code.name}")
        return outcome

    def _judge(self, topic: NewTopic) -> Code | None:
        if self.requests in self.passing:
            return self.passing[self.requests]
        if topic.name in self.there:
            return Code.TOPIC_ALREADY_EXISTS
        if topic.replication_factor in self.factors:
            return self.factors[topic.replication_factor]
        if self.apart and self.apart <= topic.configs.keys():
            return Code.INVALID_CONFIG
        return next((code for key, code in self.refuses.items() if key in topic.configs), None)


async def create(cluster: Restricted, factor: int = 3, *, validate_only: bool = False) -> Creation:
    topic = NewTopic("t", 1, factor, dict(WANTED))
    return await create_fitting_topics(cluster, [topic], kept=KEPT, validate_only=validate_only)


@pytest.mark.parametrize("code", [Code.INVALID_CONFIG, Code.INVALID_REQUEST, Code.POLICY_VIOLATION])
async def test_config_that_is_refused_is_left_out_with_its_reason(code: Code) -> None:
    cluster = Restricted(refuses={"segment.bytes": code})
    creation = await create(cluster)
    assert creation == Creation(("t",), refused={"t": {"segment.bytes": f"no: {code.name}"}})
    assert cluster.there["t"].configs == {"cleanup.policy": "compact", "segment.index.bytes": "2"}


async def test_all_configs_that_are_refused_are_left_out() -> None:
    cluster = Restricted(refuses={"segment.bytes": Code.POLICY_VIOLATION, "segment.index.bytes": Code.INVALID_CONFIG})
    assert (await create(cluster)).refused["t"].keys() == {"segment.bytes", "segment.index.bytes"}
    assert cluster.there["t"].configs == {"cleanup.policy": "compact"}


async def test_kept_config_that_is_refused_fails_the_topic() -> None:
    cluster = Restricted(refuses={"segment.bytes": Code.INVALID_CONFIG, "cleanup.policy": Code.POLICY_VIOLATION})
    creation = await create(cluster)
    assert creation.created == ()
    assert cluster.there == {}
    assert creation.failed["t"].args[0].endswith("no: POLICY_VIOLATION"), "that of the config that counts"


@pytest.mark.parametrize("request_number", [3, 4, 5])
@pytest.mark.parametrize("code", [Code.THROTTLING_QUOTA_EXCEEDED, Code.NOT_CONTROLLER, Code.REQUEST_TIMED_OUT])
async def test_config_is_not_refused_by_what_passes(code: Code, request_number: int) -> None:
    cluster = Restricted(refuses={"segment.bytes": Code.POLICY_VIOLATION})
    cluster.passing = {request_number: code}
    creation = await create(cluster)
    assert (creation.created, creation.refused) == ((), {})
    assert creation.failed["t"].args[0].endswith(f"no: {code.name}")
    assert cluster.there == {}, "it would lack a config for good"
    assert (await create(cluster)).refused["t"].keys() == {"segment.bytes"}


async def test_configs_that_do_not_go_together_lose_the_later_one() -> None:
    cluster = Restricted(apart=("segment.bytes", "segment.index.bytes"))
    assert (await create(cluster)).refused["t"].keys() == {"segment.index.bytes"}
    assert cluster.there["t"].configs == {"cleanup.policy": "compact", "segment.bytes": "1"}


@pytest.mark.parametrize("code", [Code.INVALID_REPLICATION_FACTOR, Code.POLICY_VIOLATION])
@pytest.mark.parametrize(
    ("wanted", "accepted"), [(2, (3,)), (1, (3,)), (3, (-1,)), (3, (-1, 1)), (3, (1,)), (-1, (3,)), (2, (3, -1))]
)
async def test_replication_factor_is_one_that_the_cluster_accepts(
    code: Code, wanted: int, accepted: tuple[int, ...]
) -> None:
    refused = dict.fromkeys({-1, 1, 2, 3} - set(accepted), code)
    cluster = Restricted(factors=refused, refuses={"segment.bytes": Code.POLICY_VIOLATION})
    creation = await create(cluster, wanted)
    assert cluster.there["t"].replication_factor == accepted[0]
    assert creation.factors == {"t": accepted[0]}
    assert creation.refused["t"].keys() == {"segment.bytes"}


async def test_topic_waits_for_brokers_that_are_down() -> None:
    cluster = Restricted(factors=dict.fromkeys((2, 3), Code.INVALID_REPLICATION_FACTOR), live=1)
    creation = await create(cluster, 3)
    assert creation.failed.keys() == {"t"}
    assert cluster.there == {}, "it would have fewer replicas for good"


async def test_topic_with_default_factor_waits_for_brokers_that_are_down() -> None:
    """Their default is 3, and one of three restarts."""
    cluster = Restricted(factors=dict.fromkeys((-1, 3), Code.INVALID_REPLICATION_FACTOR), live=2)
    creation = await create(cluster, -1)
    assert creation.failed.keys() == {"t"}
    assert cluster.there == {}, "it would have two replicas for good"


async def test_refusal_that_nothing_helps_against_is_that_of_the_first_answer() -> None:
    cluster = Restricted(factors=dict.fromkeys((-1, 1, 2, 3), Code.POLICY_VIOLATION))
    assert str((await create(cluster)).failed["t"]).endswith("no: POLICY_VIOLATION")


async def test_other_refusals_and_topics_that_exist_cost_no_more_requests() -> None:
    cluster = Restricted(refuses={"segment.bytes": Code.INVALID_TOPIC_EXCEPTION})
    assert (await create(cluster)).failed.keys() == {"t"}
    assert cluster.requests == 1
    cluster = Restricted()
    assert (await create(cluster)).created == ("t",)
    assert cluster.requests == 1
    assert (await create(cluster)).existed == ("t",)
    assert cluster.requests == 2


async def test_validation_creates_nothing_and_finds_the_same() -> None:
    cluster = Restricted(refuses={"segment.bytes": Code.POLICY_VIOLATION}, factors={2: Code.POLICY_VIOLATION})
    asked = await create(cluster, 2, validate_only=True)
    assert cluster.there == {}
    assert asked == await create(cluster, 2)


async def test_control_topic_keeps_its_policy_and_names_refused_configs() -> None:
    cluster = Restricted(refuses={"segment.index.bytes": Code.POLICY_VIOLATION})
    created = await ensure_control_topics(cluster, [ControlTopic("t", 1, 3)])
    assert created.names == ("t",)
    assert created.refused["t"].keys() == {"segment.index.bytes"}
    assert cluster.there["t"].configs == {"cleanup.policy": "compact"}
    assert (await ensure_control_topics(cluster, [ControlTopic("t", 1, 3)])).names == ()


async def test_control_topic_without_its_policy_is_not_created() -> None:
    cluster = Restricted(refuses={"cleanup.policy": Code.INVALID_CONFIG})
    with pytest.raises(RequestRefused, match="INVALID_CONFIG"):
        await ensure_control_topics(cluster, [ControlTopic("t", 1, 3)])
