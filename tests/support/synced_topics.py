"""Topics of a flow on both clusters, their rows and their events, as topic-sync leaves them."""

import uuid
from functools import cache, partial

from confluent_kafka.admin import ConfigResource

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support import eventually
from tests.support.broker import Broker
from tests.support.clusters import admin
from tests.support.control import last_row

MARK = uuid.uuid4().hex[:6]
SOURCE, TARGET = f"s{MARK}", f"t{MARK}"
FLOW = Flow(SOURCE, TARGET)
FORCING = Flow(f"f{MARK}", TARGET)
"""The source's defaults are set on the target."""

client = cache(admin)
wait_until = partial(eventually.wait_until, every=0.25)  # each look opens a consumer: not too often


def partitions(broker: Broker, topic: str) -> int:
    metadata = client(broker.bootstrap).list_topics(timeout=10).topics.get(topic)
    return 0 if metadata is None or metadata.error is not None else len(metadata.partitions)


def configs(broker: Broker, topic: str) -> dict[str, str]:
    """Return what is set on the topic itself."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = client(broker.bootstrap).describe_configs([resource]).values()
    return {e.name: e.value for e in future.result(10).values() if e.source == 1}


def row(broker: Broker, topic: str, flow: Flow = FLOW) -> MirroredTopic | None:
    last = last_row(broker.bootstrap, flow, MirroredTopic(source_topic=topic, target_topic="").key())
    return last if isinstance(last, MirroredTopic) else None
