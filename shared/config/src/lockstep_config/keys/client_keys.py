"""Java's client properties, and their names in librdkafka.

`CONNECTION` is the set K of `mm2-behaviour.md` §5.4: the properties of a whole cluster. `CLIENT` are the properties
that are allowed behind `consumer.`, `producer.` and `admin.`; those of K are allowed there too. Properties of TLS and
SASL get their meaning in `tls` and `sasl`. `docs/reference/client-keys.md` shows all of them, as they are declared
here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from lockstep_config.keys.key_types import MAXIMUM, KeyStatus
from lockstep_state.kafka.batch_codecs import CODEC_NAMES

ClientKind = Literal["consumer", "producer", "admin"]


class Untranslatable(ValueError):
    """A Java property cannot be handed to Lockstep's clients.

    `key` is the property; the text says why and what to do.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


_LONGS = frozenset(
    [
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "socket.connection.setup.timeout.ms",
    ]
)
_BELOW_ZERO = frozenset(
    ["connections.max.idle.ms", "receive.buffer.bytes", "send.buffer.bytes", "socket.connection.setup.timeout.ms"]
)


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One client property.

    `librdkafka` is its name in librdkafka, empty if it has none; the limits are librdkafka's, for whole numbers. A
    number beyond them that Java would take is brought to the nearest limit, under a note. If there is no name in
    librdkafka, the limits are Java's, and a number beyond them is a mistake.

    `choices` are the values that it may have here; for a refused property, the values that change nothing. `reason`
    says why it is without effect, or refused. `records` says what it does to the mirrored records, which never go
    through librdkafka. `not_records` says why it does nothing to them, if it counts for all other traffic only. Admin
    clients carry no mirrored records.
    """

    name: str
    kinds: frozenset[ClientKind]
    librdkafka: str = ""
    minimum: int | None = None
    maximum: int | None = None
    records: str = ""
    not_records: str = ""
    status: KeyStatus = KeyStatus.USED
    reason: str = ""
    choices: tuple[str, ...] = ()

    @property
    def java_limits(self) -> tuple[int, int]:
        """The least and the most number that Java takes, for a property that librdkafka knows."""
        return -1 if self.name in _BELOW_ZERO else 0, 2**63 - 1 if self.name in _LONGS else MAXIMUM

    def nearest(self, number: int) -> int:
        """Return the number within librdkafka's limits that is nearest to `number`."""
        limited = number if self.minimum is None else max(number, self.minimum)
        return limited if self.maximum is None else min(limited, self.maximum)


NO_RESET = "none"
"""A value of `auto.offset.reset`: Java's consumer raises an error if it has no position.

In Lockstep a partition that was never copied then begins at its earliest record, and `lockstep.on.gap` decides gaps.
"""

CONSUMER: frozenset[ClientKind] = frozenset({"consumer"})
PRODUCER: frozenset[ClientKind] = frozenset({"producer"})
ADMIN: frozenset[ClientKind] = frozenset({"admin"})
RECORDS: frozenset[ClientKind] = CONSUMER | PRODUCER
ALL: frozenset[ClientKind] = RECORDS | ADMIN

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000


_JAVA_ONLY = "it names a part of Java"
_KERBEROS = "GSSAPI is refused"
_BROKERS = "brokers check tokens; clients do not"
_ASSERTION = "assertions made here are not supported: `sasl.oauthbearer.jwt.retriever.class` of that kind is refused"

_KERBEROS_KEYS = "service.name kinit.cmd ticket.renew.window.factor ticket.renew.jitter min.time.before.relogin"
_ASSERTIONS = """algorithm claim.aud claim.exp.seconds claim.iss claim.jti.include claim.nbf.seconds claim.sub
    file private.key.file private.key.passphrase template.file"""
_VALIDATION = """scope.claim.name sub.claim.name jwks.endpoint.url jwks.endpoint.refresh.ms
    jwks.endpoint.retry.backoff.max.ms
    jwks.endpoint.retry.backoff.ms clock.skew.seconds expected.audience expected.issuer jwt.validator.class"""

CONNECTION_WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {f"sasl.kerberos.{name}": _KERBEROS for name in _KERBEROS_KEYS.split()}
    | {f"sasl.oauthbearer.assertion.{name}": _ASSERTION for name in _ASSERTIONS.split()}
    | {f"sasl.oauthbearer.{name}": _BROKERS for name in _VALIDATION.split()}
    | {
        "ssl.provider": _JAVA_ONLY,
        "ssl.keymanager.algorithm": _JAVA_ONLY,
        "ssl.trustmanager.algorithm": _JAVA_ONLY,
        "ssl.secure.random.implementation": _JAVA_ONLY,
    }
)
"""Connection properties that change nothing here, with the reason."""

_STORES = "JKS, PKCS12 (each is recognised where the other is named, as in Java) or PEM; others are refused"
_VERSIONS = "for the mirrored records; librdkafka speaks the newest that both sides know, TLS 1.2 at least"
_TOKENS = "where access tokens come from"

CONNECTION_USED: Mapping[str, str] = MappingProxyType(
    {
        "bootstrap.servers": "where the cluster is found",
        "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, in any case",
        "ssl.protocol": _VERSIONS,
        "ssl.enabled.protocols": f"{_VERSIONS}. Versions before 1.2 are left out, and refused if they are alone",
        "ssl.cipher.suites": "`ssl.cipher.suites`, in OpenSSL's names; of TLS 1.3 OpenSSL offers its three suites",
        "ssl.truststore.type": _STORES,
        "ssl.truststore.location": "read into `ssl.ca.pem`",
        "ssl.truststore.password": "opens the truststore; without it a JKS store's digest is not checked, as in Java",
        "ssl.truststore.certificates": "`ssl.ca.pem`",
        "ssl.keystore.type": _STORES,
        "ssl.keystore.location": "read into `ssl.certificate.pem` and `ssl.key.pem`",
        "ssl.keystore.password": "opens the keystore, and its key where that has no password of its own",
        "ssl.keystore.certificate.chain": "`ssl.certificate.pem`",
        "ssl.keystore.key": "`ssl.key.pem`",
        "ssl.key.password": "decrypts the private key",
        "ssl.endpoint.identification.algorithm": "`ssl.endpoint.identification.algorithm`: https, or empty for none",
        "sasl.mechanism": "`sasl.mechanism`, one of [these](../guides/tls-and-sasl.md#sasl); others are refused",
        "sasl.jaas.config": "`sasl.username` and `sasl.password`; under OAUTHBEARER " + _TOKENS,
        "sasl.login.callback.handler.class": "Kafka's OAuthBearerLoginCallbackHandler, Strimzi's "
        "JaasClientOauthLoginCallbackHandler, AWS's IAMOAuthBearerLoginCallbackHandler, Google's "
        "GcpLoginCallbackHandler, and [for Azure](../guides/tls-and-sasl.md#azure-event-hubs) Spring's "
        "KafkaOAuth2AuthenticateCallbackHandler and Conduktor's AzureManagedIdentityCallbackHandler, whose options "
        "are then known; others are refused",
        "sasl.client.callback.handler.class": "AWS's IAMClientCallbackHandler under AWS_MSK_IAM, and "
        "IAMOAuthBearerLoginCallbackHandler under OAUTHBEARER; others are refused",
        "sasl.login.refresh.window.factor": "when a token is renewed",
        "sasl.login.refresh.window.jitter": "when a token is renewed",
        "sasl.login.refresh.min.period.seconds": "when a token is renewed",
        "sasl.login.refresh.buffer.seconds": "when a token is renewed",
        "sasl.login.connect.timeout.ms": "how long a token endpoint may take to be reached",
        "sasl.login.read.timeout.ms": "how long a token endpoint may take to answer",
        "sasl.login.retry.backoff.ms": "the first pause before a token endpoint is asked again",
        "sasl.login.retry.backoff.max.ms": "for how long a token endpoint is asked again",
        "sasl.oauthbearer.token.endpoint.url": f"{_TOKENS}: https://..., or file:///... for a file that holds one",
        "sasl.oauthbearer.jwt.retriever.class": "Kafka's default, and those for client credentials and files",
        "sasl.oauthbearer.client.credentials.client.id": "the client's id for the token endpoint",
        "sasl.oauthbearer.client.credentials.client.secret": "its secret",
        "sasl.oauthbearer.scope": "the scope that is asked for",
        "sasl.oauthbearer.header.urlencode": "whether id and secret are URL-encoded in the request's header",
    }
)
"""Connection properties that count, and what they become: librdkafka's names in backticks.

For the mirrored records the same goes into Python's own TLS context, and to our own connections.
"""

CONNECTION_REFUSED: Mapping[str, str] = MappingProxyType(
    {"ssl.engine.factory.class": "Java classes cannot run here", "sasl.login.class": "Java classes cannot run here"}
)
"""Connection properties that stop the start if TLS or SASL would use them, with the reason for the documentation.

The sentences of the errors are in `tls` and `sasl`.
"""

CONNECTION: frozenset[str] = frozenset({*CONNECTION_USED, *CONNECTION_WITHOUT_EFFECT, *CONNECTION_REFUSED})


def _same(
    name: str, kinds: frozenset[ClientKind], minimum: int | None = None, maximum: int | None = None, records: str = ""
) -> ClientKey:
    return ClientKey(name, kinds, name, minimum, maximum, records)


def _elsewhere(
    name: str, reason: str, kinds: frozenset[ClientKind], minimum: int, maximum: int, librdkafka: str = ""
) -> ClientKey:
    """Return a property that counts for all traffic but the mirrored records, for `reason`."""
    return ClientKey(name, kinds, librdkafka or name, minimum, maximum, not_records=reason)


def _unused(reason: str, kinds: frozenset[ClientKind], names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, kinds, status=KeyStatus.WITHOUT_EFFECT, reason=reason) for name in names.split())


_SERIALIZER = "org.apache.kafka.common.serialization.{}Serializer"
_BYTES = tuple(map(_SERIALIZER.format, ("ByteArray", "Bytes", "ByteBuffer")))

_AGAIN = "when a partition is tried again is Lockstep's own"
_OPENING = "a connection has so long to open, and a login for each answer; 10 s where it is not set"
_UNSET = "where it is not set 40 s and 30"
_NAMED = "in front of the name that MirrorMaker gives each client"

_KEYS: tuple[ClientKey, ...] = (
    ClientKey(name="client.id", kinds=RECORDS, records=f"{_NAMED}, elsewhere too"),
    ClientKey(name="client.id", kinds=ADMIN, records=_NAMED),
    ClientKey(name="client.dns.lookup", librdkafka="client.dns.lookup", kinds=ALL, choices=(
        "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"
    ), not_records="every address behind a name is tried"),
    _same("client.rack", CONSUMER, records="which replica is read, where brokers choose one by rack (KIP-392)"),
    ClientKey("request.timeout.ms", CONSUMER, "socket.timeout.ms", 10, 300_000,
        f"a fetch is given up so long after `fetch.max.wait.ms`, any other request after so long; {_UNSET}"),
    ClientKey("request.timeout.ms", PRODUCER, "socket.timeout.ms", 10, 300_000,
        "an append is given up after so long. A broker waits for its replicas three quarters of it. Any other request "
        f"is given up after so long too; {_UNSET}"),
    ClientKey("request.timeout.ms", ADMIN, "socket.timeout.ms", 10, 300_000),
    _same("socket.connection.setup.timeout.ms", RECORDS, 1_000, 2_147_483_647, _OPENING),
    _same("socket.connection.setup.timeout.ms", ADMIN, 1_000, 2_147_483_647),
    _same("connections.max.idle.ms", RECORDS, 0, 2_147_483_647,
        "a connection is closed on which nothing was asked for so long; unset: 540000"),
    _same("connections.max.idle.ms", ADMIN, 0, 2_147_483_647),
    _elsewhere("reconnect.backoff.ms", _AGAIN, ALL, 0, _HOUR_MS),
    _elsewhere("reconnect.backoff.max.ms", _AGAIN, ALL, 0, _HOUR_MS),
    _elsewhere("retry.backoff.ms", _AGAIN, ALL, 1, 300_000),
    _elsewhere("retry.backoff.max.ms", _AGAIN, ALL, 1, 300_000),
    _same("metadata.max.age.ms", CONSUMER, 1, _DAY_MS, "how long a follower is read before its leader is asked again"),
    _elsewhere("metadata.max.age.ms", "the leader is looked up when a broker says that it is another one, or is gone",
        PRODUCER, 1, _DAY_MS),
    _same("metadata.max.age.ms", ADMIN, 1, _DAY_MS),
    ClientKey("receive.buffer.bytes", RECORDS, "socket.receive.buffer.bytes", 0, 100_000_000, "each connection"),
    ClientKey("send.buffer.bytes", RECORDS, "socket.send.buffer.bytes", 0, 100_000_000, "each connection"),
    ClientKey("receive.buffer.bytes", ADMIN, "socket.receive.buffer.bytes", 0, 100_000_000),
    ClientKey("send.buffer.bytes", ADMIN, "socket.send.buffer.bytes", 0, 100_000_000),
    ClientKey("fetch.max.wait.ms", CONSUMER, "fetch.wait.max.ms", 0, 300_000, "each fetch"),
    _same("fetch.min.bytes", CONSUMER, 1, 100_000_000, "each fetch"),
    _same("fetch.max.bytes", CONSUMER, 0, 2_147_483_135, "each fetch"),
    _same("max.partition.fetch.bytes", CONSUMER, 1, 1_000_000_000,
        "each fetch; where it is not set, more is asked of far brokers"),
    ClientKey(name="check.crcs", librdkafka="check.crcs", kinds=CONSUMER, not_records="CRCs are checked always"),
    ClientKey(name="isolation.level", librdkafka="isolation.level", kinds=CONSUMER, choices=(
        "read_uncommitted", "read_committed"
    ), records="whether aborted transactions are copied"),
    # Java's `by_duration:` would need the broker's clock.
    ClientKey(name="auto.offset.reset", librdkafka="auto.offset.reset", kinds=CONSUMER,
        choices=("earliest", "latest", NO_RESET),
        records="where a partition begins that was never copied"),
    _elsewhere("max.request.size", "the target topic's `max.message.bytes` is the limit",
        PRODUCER, 1_000, 1_000_000_000, "message.max.bytes"),
    ClientKey(name="transaction.timeout.ms", kinds=PRODUCER, minimum=1_000, maximum=_HOUR_MS,
        records="with `exactly.once.source.support=enabled`: when the target aborts what nobody ends"),
    _elsewhere("delivery.timeout.ms", "a record is tried until it is there", PRODUCER, 0, 2_147_483_647),
    # The data plane reads these. The facts that librdkafka sends are too small to gain from them.
    ClientKey(name="compression.type", kinds=PRODUCER, choices=CODEC_NAMES,
        records="uncompressed batches get it; compressed ones too with `lockstep.recompress=true`"),
    ClientKey(name="compression.gzip.level", kinds=PRODUCER, choices=("-1", *map(str, range(1, 10))),
        records="wherever a batch is built anew with gzip"),
    ClientKey(name="compression.lz4.level", kinds=PRODUCER, minimum=1, maximum=17,
        records="wherever a batch is built anew with lz4; 9 is the fast compressor, as in Java"),
    ClientKey(name="compression.zstd.level", kinds=PRODUCER, minimum=-131_072, maximum=22,
        records="wherever a batch is built anew with zstd"),
    ClientKey(
        name="interceptor.classes", kinds=RECORDS, status=KeyStatus.REFUSED,
        reason="an interceptor may change records and Java classes cannot run here: remove it",
    ),
    *_unused("Java's metrics do not exist here; each service has a page of its own", ALL,
        "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms "
        "auto.include.jmx.reporter enable.metrics.push"),
    *_unused("the whole file has its own config.providers", ALL, "config.providers"),
    *_unused("every try to connect has the same time", ALL, "socket.connection.setup.timeout.max.ms"),
    *_unused(_JAVA_ONLY, ALL, "security.providers"),
    *_unused("how brokers are found again that were all lost is settled for each client", ALL,
        "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms"),
    *_unused("admin.timeout.ms is the limit", CONSUMER | ADMIN, "default.api.timeout.ms"),
    *_unused("brokers are reached, not controllers", ADMIN, "bootstrap.controllers"),
    *_unused("what fails for a while is tried again", PRODUCER | ADMIN, "retries"),
    *_unused("whole batches are fetched, not single records", CONSUMER, "max.poll.records max.poll.interval.ms"),
    *_unused("records are read as bytes whatever it says, as in MirrorMaker", CONSUMER,
        "key.deserializer value.deserializer"),
    *_unused("partitions are assigned by Lockstep: no consumer group takes part", CONSUMER,
        "group.id group.instance.id group.protocol group.remote.assignor session.timeout.ms heartbeat.interval.ms "
        "partition.assignment.strategy internal.leave.group.on.close share.acknowledgement.mode share.acquire.mode"),
    *_unused("brokers without a last stable offset are too old for Lockstep", CONSUMER,
        "internal.throw.on.fetch.stable.offset.unsupported"),
    *_unused("progress is kept by Lockstep, never in a group", CONSUMER, "enable.auto.commit auto.commit.interval.ms"),
    *_unused("sources are only read: a topic is never created by reading it", CONSUMER, "allow.auto.create.topics"),
    *_unused("which topics are internal is the replication policy's to say", CONSUMER, "exclude.internal.topics"),
    *_unused("batches go as they came and facts go at once: nothing waits to be batched", PRODUCER,
        "batch.size linger.ms buffer.memory max.block.ms partitioner.adaptive.partitioning.enable "
        "partitioner.availability.timeout.ms"),
    *_unused("the order and safety of what is written is Lockstep's own: acks=all, idempotent", PRODUCER,
        "acks enable.idempotence max.in.flight.requests.per.connection transactional.id "
        "transaction.two.phase.commit.enable"),
    *_unused("partitions are preserved", PRODUCER, "partitioner.class partitioner.ignore.keys"),
    *(ClientKey(
        name=name, kinds=PRODUCER, status=KeyStatus.REFUSED, reason="records are written as bytes", choices=_BYTES)
      for name in ("key.serializer", "value.serializer")),
    *_unused("only topics in use are read", PRODUCER, "metadata.max.idle.ms"),
)  # fmt: skip  # one line a property: the formatter would make eight of each

CLIENT: Mapping[ClientKind, Mapping[str, ClientKey]] = MappingProxyType(
    {kind: MappingProxyType({key.name: key for key in _KEYS if kind in key.kinds}) for kind in get_args(ClientKind)}
)
"""The client properties by kind of client, then by name, without the connection properties."""
