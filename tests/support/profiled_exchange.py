"""One connection of a client with a cluster that answers by a profile, whatever stands behind.

A request that the profile refuses goes on as one that the broker behind refuses or knows for sure, and its answer is
made from that one. So the order of answers, and what holds and delays them, stay the broker's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from tests.support.cluster_profile import API_KEYS, ClusterProfile
from tests.support.frame_stream import FrameStream, Rewrite
from tests.support.kafka_frame import Frame, filled, read_frame, written_frame
from tests.support.stored_batches import codecs_of, with_wrong_crc, without_producer

Address = tuple[str, int]
ChangeBody = Callable[[Any], Any]
REQUEST_HEAD, ANSWER_HEAD = 12, 8
NO_SUCH_CONFIG = "tests.support.no.such.config"
NOT_COMMITTED = ".not-committed"
NOT_SENT = -(2**31)
"""What a broker sends for authorized operations that it was not asked for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked, and what is made of the answer's body. None: it is said to be unsupported."""

    key: int
    version: int
    change: ChangeBody | None


class ProfiledExchange:
    """Rewrites requests and answers of one connection.

    `addresses`: by the address that the broker behind gives for itself, the one that clients are told.
    """

    def __init__(self, profile: ClusterProfile, addresses: Mapping[Address, Address]) -> None:
        self.profile = profile
        self._addresses = addresses
        self._rewrites = profile != ClusterProfile()
        self._begun: list[int] = []
        self._asked: dict[bytes, _Asked] = {}
        """By the number of a request, those whose answer is rewritten."""
        self._requests = FrameStream(REQUEST_HEAD, self._take_request)
        self._answers = FrameStream(ANSWER_HEAD, self._take_answer)

    def pass_requests(self, chunk: bytes) -> bytes:
        """Return what goes to the broker now. Raises ConnectionResetError where the cluster ends the connection."""
        return self._requests.pass_on(chunk)

    def pass_answers(self, chunk: bytes) -> bytes:
        """Return what goes to the client now."""
        return self._answers.pass_on(chunk) if self._rewrites else chunk

    def take_begun(self) -> list[int]:
        """Return the keys of the requests that have begun since this was last asked."""
        begun, self._begun = self._begun, []
        return begun

    def _take_request(self, head: bytes) -> Rewrite | None:
        size, key, version = (int.from_bytes(head[a:b]) for a, b in ((0, 4), (4, 6), (6, 8)))
        self._begun.append(key)
        name = api_key_map.get(key)
        if not self._rewrites or name is None:
            return None
        profile, number = self.profile, head[8:12]
        oldest, newest = profile.range_of(name)
        if profile.largest_request is not None and size > profile.largest_request:
            raise ConnectionResetError(f"a request of {size} bytes")
        if name in profile.unsupported:
            return lambda frame: self._ask_instead(frame, _Asked(key, version, None))
        if name == "api_versions" and not oldest <= version <= newest and not profile.resets_newer_api_versions:
            return lambda frame: self._ask_instead(
                frame, _Asked(key, 0, lambda body: self._announce(body, refuses=True))
            )
        if name in profile.closes_on or not oldest <= version <= newest:
            raise ConnectionResetError(f"{name} in version {version}")
        change_answer = self._change_of_answer(name)
        change_request = self._change_of_request(name)
        if change_answer is not None:
            self._asked[number] = _Asked(key, version, change_answer)
        if change_request is None:
            return None

        def rewrite(frame: bytes) -> bytes:
            request = read_frame(frame, load_request_schema(key, version))
            body, answered = change_request(request.body)
            if answered is not None:
                self._asked[number] = _Asked(key, version, answered)
            return written_frame(Frame(request.header, body))

        return rewrite

    def _take_answer(self, head: bytes) -> Rewrite | None:
        request = self._asked.pop(head[4:8], None)
        if request is None:
            return None

        def rewrite(frame: bytes) -> bytes:
            schema = load_response_schema(request.key, request.version)
            if request.change is None:
                header = filled(schema.__header_schema__, correlation_id=int.from_bytes(head[4:8], signed=True))
                return written_frame(Frame(header, filled(schema, error_code=ErrorCode.unsupported_version)))
            header, body = read_frame(frame, schema)
            return written_frame(Frame(header, request.change(body)))

        return rewrite

    def _ask_instead(self, frame: bytes, request: _Asked) -> bytes:
        """Return a request for versions with the number of the one in the frame, and remember what was asked."""
        number = frame[8:12]
        self._asked[number] = request
        schema = load_request_schema(API_KEYS["api_versions"], 0)
        header = filled(
            schema.__header_schema__,
            request_api_key=API_KEYS["api_versions"],
            request_api_version=0,
            correlation_id=int.from_bytes(number, signed=True),
            client_id=None,
        )
        return written_frame(Frame(header, schema()))

    def _change_of_answer(self, name: str) -> ChangeBody | None:
        """Return what is changed in every answer to a request. None: nothing."""
        profile = self.profile
        if name in profile.refuses:
            return lambda body: _with_error(body, profile.refuses[name])
        if name == "api_versions":
            return lambda body: self._announce(body)
        if name == "offset_for_leader_epoch" and profile.says_epochs_end_at_zero:
            return _end_epochs_at_zero
        if name in ("metadata", "find_coordinator", "describe_cluster", "describe_groups"):
            return self._name_clusters_own
        return None

    def _change_of_request(self, name: str) -> Callable[[Any], tuple[Any, ChangeBody | None]] | None:
        """Return what is changed in a request, with what is changed in its answer then. None: nothing."""
        profile = self.profile
        if name == "create_topics":
            return self._create_topics
        if name in ("alter_configs", "incremental_alter_configs"):
            return self._alter_configs
        if name == "offset_commit" and profile.commit_errors:
            return self._commit
        if name == "produce" and (profile.refused_codecs or profile.forgets_producers):
            return self._produce
        return None

    def _announce(self, body: Any, *, refuses: bool = False) -> Any:
        announced = []
        for entry in body.api_keys:
            name = api_key_map.get(int(entry.api_key))
            oldest, newest = (0, -1) if name is None else self.profile.range_of(name)
            low, high = max(oldest, entry.min_version), min(newest, entry.max_version)
            if low <= high:
                announced.append(replace(entry, min_version=low, max_version=high))
        code = ErrorCode.unsupported_version if refuses else body.error_code
        return replace(body, api_keys=tuple(announced), error_code=code)

    def _name_clusters_own(self, body: Any) -> Any:
        """Let a client stay in the proxy, and know no rights where the cluster tells none."""
        names = {part.name for part in fields(body)}
        changed: dict[str, Any] = {}
        if {"host", "port"} <= names:
            changed |= self._moved(body)
        for many in {"brokers", "coordinators", "topics", "groups"} & names:
            changed[many] = tuple(self._name_clusters_own(entry) for entry in getattr(body, many))
        if self.profile.hides_authorized_operations:
            changed |= {name: NOT_SENT for name in names if name.endswith("authorized_operations")}
        return replace(body, **changed)

    def _moved(self, broker: Any) -> dict[str, Any]:
        host, port = self._addresses.get((broker.host, broker.port), (broker.host, broker.port))
        return {"host": host, "port": port}

    def _create_topics(self, body: Any) -> tuple[Any, ChangeBody | None]:
        refusals: dict[str, tuple[ErrorCode, str]] = {}
        topics = []
        for topic in body.topics:
            refusal = self._refusal_of_new(topic)
            if refusal is not None:
                refusals[topic.name] = refusal
                # Without a partition no broker creates it, and one that exists is still said to.
                topic = replace(topic, num_partitions=0, replication_factor=-1, assignments=(), configs=())
            elif self.profile.replication is not None:
                topic = replace(topic, replication_factor=-1)
            topics.append(topic)
        return replace(body, topics=tuple(topics)), _refusing("topics", "name", refusals)

    def _refusal_of_new(self, topic: Any) -> tuple[ErrorCode, str] | None:
        rules, replication = self.profile.configs, self.profile.replication
        if (
            replication is not None
            and not topic.assignments
            and topic.replication_factor not in (-1, replication.factor)
        ):
            return replication.code, replication.sentence.format(factor=replication.factor)
        sentence = rules.refusal({config.name: config.value for config in topic.configs}, creates=True)
        return None if sentence is None else (rules.code, sentence)

    def _alter_configs(self, body: Any) -> tuple[Any, ChangeBody | None]:
        rules = self.profile.configs
        refusals: dict[str, tuple[ErrorCode, str]] = {}
        resources = []
        for resource in body.resources:
            sentence = rules.refusal({config.name: config.value for config in resource.configs}, creates=False)
            if sentence is not None:
                refusals[resource.resource_name] = rules.code, sentence
                # No broker takes this one, and one that knows no such topic still says so.
                refused = replace(resource.configs[0], name=NO_SUCH_CONFIG, value="-")
                resource = replace(resource, configs=(refused,))
            resources.append(resource)
        return replace(body, resources=tuple(resources)), _refusing("responses", "resource_name", refusals)

    def _commit(self, body: Any) -> tuple[Any, ChangeBody | None]:
        """Let the broker refuse topics by a name that it does not know, and put our errors in place of its own."""
        errors, group = self.profile.commit_errors, str(body.group_id)
        codes = {
            f"{topic.name}{NOT_COMMITTED}": code
            for topic in body.topics
            if (code := errors.get((group, str(topic.name)), errors.get((group, "")))) is not None
        }

        def renamed(topic: Any) -> Any:
            name = f"{topic.name}{NOT_COMMITTED}"
            return replace(topic, name=name) if name in codes else topic

        def refuse(topic: Any) -> Any:
            if (code := codes.get(str(topic.name))) is None:
                return topic
            entries = tuple(replace(entry, error_code=code) for entry in topic.partitions)
            return replace(topic, name=str(topic.name).removesuffix(NOT_COMMITTED), partitions=entries)

        changed = replace(body, topics=tuple(map(renamed, body.topics)))
        return changed, lambda answer: replace(answer, topics=tuple(map(refuse, answer.topics)))

    def _produce(self, body: Any) -> tuple[Any, ChangeBody | None]:
        refusals: dict[tuple[Any, int], ErrorCode] = {}
        topics = []
        for topic in body.topic_data:
            partitions = []
            for partition in topic.partition_data:
                records = partition.records or b""
                code = next(
                    (self.profile.refused_codecs[c] for c in codecs_of(records) if c in self.profile.refused_codecs),
                    None,
                )
                if code is not None:
                    refusals[_topic_of(topic), partition.index] = code
                    records = with_wrong_crc(records)
                elif self.profile.forgets_producers:
                    records = without_producer(records, in_transactions=self.profile.forgets_transactions)
                partitions.append(replace(partition, records=records))
            topics.append(replace(topic, partition_data=tuple(partitions)))
        changed = replace(body, topic_data=tuple(topics))
        return changed, (lambda answer: _refuse_batches(answer, refusals)) if refusals else None


def _with_error(entity: Any, code: ErrorCode) -> Any:
    """Return an answer with the error at its top, or else in each of its entries."""
    parts = {part.name: getattr(entity, part.name) for part in fields(entity)}
    if errors := [name for name in parts if name.endswith("error_code")]:
        return replace(entity, **dict.fromkeys(errors, code))
    entries = {name: part for name, part in parts.items() if isinstance(part, tuple)}
    return replace(
        entity,
        **{
            name: tuple(_with_error(entry, code) if is_dataclass(entry) else entry for entry in part)
            for name, part in entries.items()
        },
    )


def _topic_of(topic: Any) -> Any:
    """Return the name, or from Produce 13 on the id."""
    return topic.name if hasattr(topic, "name") else topic.topic_id


def _refusing(many: str, named: str, refusals: Mapping[str, tuple[ErrorCode, str]]) -> ChangeBody | None:
    """Return what puts our refusals in place of those that were provoked. Other errors stay: they come first."""
    if not refusals:
        return None
    provoked = (ErrorCode.invalid_partitions, ErrorCode.invalid_config, ErrorCode.invalid_request)

    def change(answer: Any) -> Any:
        entries = []
        for entry in getattr(answer, many):
            refusal = refusals.get(getattr(entry, named))
            if refusal is not None and entry.error_code in provoked:
                said = {"error_message": refusal[1]} if hasattr(entry, "error_message") else {}
                entry = replace(entry, error_code=refusal[0], **said)
            entries.append(entry)
        return replace(answer, **{many: tuple(entries)})

    return change


def _refuse_batches(answer: Any, refusals: Mapping[tuple[Any, int], ErrorCode]) -> Any:
    def refused(topic: Any, partition: Any) -> Any:
        code = refusals.get((_topic_of(topic), partition.index))
        said = {"error_message": None, "record_errors": ()} if hasattr(partition, "error_message") else {}
        return partition if code is None else replace(partition, error_code=code, **said)

    topics = (
        replace(topic, partition_responses=tuple(refused(topic, entry) for entry in topic.partition_responses))
        for topic in answer.responses
    )
    return replace(answer, responses=tuple(topics))


def _end_epochs_at_zero(answer: Any) -> Any:
    topics = (
        replace(
            topic,
            partitions=tuple(
                replace(partition, error_code=ErrorCode.none, end_offset=0)
                if not hasattr(partition, "leader_epoch")
                else replace(partition, error_code=ErrorCode.none, leader_epoch=0, end_offset=0)
                for partition in topic.partitions
            ),
        )
        for topic in answer.topics
    )
    return replace(answer, topics=tuple(topics))
