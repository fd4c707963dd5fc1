"""The settings of a test's broker: those of its JVM, of the node, of its logs and of its listeners."""

import base64
import uuid
from collections.abc import Mapping

LOCAL = "127.0.0.1"

JVM = ("-Xms128m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""Without its second compiler a JVM needs a third less of the processor in its first minute; `jvm` can give it back."""

SETTINGS = {
    "auto.create.topics.enable": "false",
    "background.threads": "2",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "6000",  # after a kill the node waits for its former self's session to end
    "controller.quorum.append.linger.ms": "1",
    "group.coordinator.threads": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),  # the default takes 128 MiB of the heap
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.retention.ms": "-1",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "8",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
}

LOGGING = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{HH:mm:ss.SSS}} %p %m (%c{{1}})%n%throwable
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""

LOGGING_BEFORE_4 = """log4j.rootLogger = {level}, out
log4j.appender.out = org.apache.log4j.ConsoleAppender
log4j.appender.out.layout = org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern = %d{{HH:mm:ss,SSS}} %p %m (%c{{1}})%n
"""


def listening(listen: Mapping[str, int], advertise: Mapping[str, int], host: str | None = None) -> dict[str, str]:
    """Return the listeners' settings. With a `host` those that are advertised are bound to every address and bear its
    name."""
    bound = {name: "0.0.0.0" if host and name in advertise else LOCAL for name in listen}
    return {
        "listeners": ",".join(f"{name}://{bound[name]}:{port}" for name, port in listen.items()),
        "advertised.listeners": ",".join(f"{name}://{host or LOCAL}:{port}" for name, port in advertise.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listen),
    }


def kafka_uuid() -> str:
    """Return an id as Kafka makes them: none begins with a dash, which its tools would read as an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made
