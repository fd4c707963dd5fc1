"""What Lockstep does with each known cluster as source and as target, as tests assert it and the page shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Role(StrEnum):
    """What the known cluster is in the flow. The other one is an Apache Kafka of today."""

    SOURCE = "source"
    TARGET = "target"


class Result(StrEnum):
    """How the copy is, over a kill -9 of the data plane."""

    EXACT = "exact"
    IN_TRANSACTIONS = "exact, in transactions"
    READ_BACK = "exact, and the target's log is read back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is so with a cluster in one role, and what says it.

    Attributes:
        result: How the copy is.
        lost: What is done otherwise or not at all, as sentences.
        hazards: Codes by which `lockstep plan` says it beforehand.
        lacks: Requests by which the cluster's row, `status` and `doctor` say it.
        events: Kinds of events by which the services say it.
        acls: The phase of ACL sync.
        lines: What the file needs beside what every file has.
        advice: Lines with which less is refused.
    """

    result: Result = Result.EXACT
    lost: tuple[str, ...] = ()
    hazards: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    acls: str = "in-sync"
    lines: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


CONFIGS = "configs that it does not take are left out, and named"
FACTOR = "it decides the replication factor"
NO_IDS = "topics have no ids"
NO_ACLS = "ACLs are not copied"
NO_RIGHTS = "rights are not checked"
NO_PRODUCERS = "its log is read when a partition begins"
NO_EPOCHS = "its log shows a truncation"
LYING = "its answers about leader epochs are not believed: its log decides"
WHOLE_CONFIGS = "configs are read and written as a whole"
NO_CODECS = "batches are copied without compression"
FEW_TOPICS = "topics are few"
FROZEN = "a writer that was frozen may double a batch, and that is reported"
DOUBLED = "records of control topics may be appended twice"
MARKERS = "offsets of copies differ by the markers of transactions"

CONTROL_CONFIGS = frozenset({"LS016", "LS026"})
OF_OLD_METADATA = frozenset({"Metadata 10", "Metadata 8"})
OF_WARPSTREAM = frozenset({"DescribeQuorum 1", "DescribeClientQuotas"})
OF_EVENT_HUBS = OF_OLD_METADATA | {"DescribeAcls", "DescribeQuorum 1", "DescribeClientQuotas"}
REFUSES_CONFIGS = frozenset({"ConfigRefused"})
UNSUPPORTED = frozenset({"RequestUnsupported"})
SOURCE, TARGET = Role.SOURCE, Role.TARGET

EXPECTED: Mapping[tuple[str, Role], Expectation] = MappingProxyType(
    {
        ("confluent-cloud", SOURCE): Expectation(
            lost=(CONFIGS, FACTOR, NO_RIGHTS),
            advice=("replication.factor = 3",),
            hazards=frozenset({"LS026", "LS027"}),
            events=REFUSES_CONFIGS,
        ),
        ("confluent-cloud", TARGET): Expectation(
            lost=(CONFIGS, FACTOR, NO_RIGHTS),
            advice=("replication.factor = 3",),
            hazards=CONTROL_CONFIGS | {"LS027"},
            events=REFUSES_CONFIGS | {"ReplicationFactorRefused"},
        ),
        ("msk-serverless", SOURCE): Expectation(
            lost=(CONFIGS, NO_ACLS),
            hazards=frozenset({"LS026", "LS029", "LS030"}),
            lacks=frozenset({"DescribeAcls", "DescribeLogDirs"}),
            events=REFUSES_CONFIGS,
            acls="not-supported",
        ),
        ("msk-serverless", TARGET): Expectation(
            lost=(CONFIGS, NO_ACLS),
            hazards=CONTROL_CONFIGS | {"LS029", "LS030"},
            lacks=frozenset({"DescribeAcls", "CreateAcls"}),
            events=REFUSES_CONFIGS,
            acls="not-supported",
        ),
        ("redpanda-25.2", SOURCE): Expectation(
            lost=(NO_IDS,),
            hazards=frozenset({"LS029"}),
            lacks=frozenset({"Metadata 10", "Metadata 9", "Fetch 12", "DescribeQuorum 1"}),
        ),
        ("redpanda-25.2", TARGET): Expectation(
            lost=(NO_IDS,),
            hazards=frozenset({"LS029"}),
            lacks=frozenset({"Metadata 10", "Produce 8", "DescribeQuorum 1"}),
        ),
        ("redpanda-25.3", SOURCE): Expectation(lacks=frozenset({"DescribeQuorum 1"})),
        ("redpanda-25.3", TARGET): Expectation(
            hazards=frozenset({"LS029"}), lacks=frozenset({"Produce 8", "DescribeQuorum 1"})
        ),
        ("warpstream", SOURCE): Expectation(
            lost=(NO_EPOCHS,),
            hazards=frozenset({"LS029"}),
            lacks=OF_WARPSTREAM | {"OffsetForLeaderEpoch 2", "DescribeLogDirs"},
            events=UNSUPPORTED,
        ),
        ("warpstream", TARGET): Expectation(
            lost=(NO_PRODUCERS, WHOLE_CONFIGS),
            hazards=frozenset({"LS029"}),
            lacks=OF_WARPSTREAM | {"DescribeProducers", "IncrementalAlterConfigs"},
            events=UNSUPPORTED,
        ),
        ("ursa", SOURCE): Expectation(
            lost=(NO_EPOCHS,),
            hazards=frozenset({"LS029"}),
            lacks=frozenset({"OffsetForLeaderEpoch 2"}),
            events=UNSUPPORTED,
        ),
        ("ursa", TARGET): Expectation(
            lost=(NO_PRODUCERS, WHOLE_CONFIGS),
            hazards=frozenset({"LS029"}),
            lacks=frozenset({"DescribeProducers", "IncrementalAlterConfigs", "AddPartitionsToTxn"}),
            events=UNSUPPORTED,
        ),
        ("event-hubs", SOURCE): Expectation(
            lost=(NO_EPOCHS, NO_IDS, NO_ACLS, NO_RIGHTS, FEW_TOPICS),
            hazards=frozenset({"LS026", "LS029", "LS030"}),
            lacks=OF_EVENT_HUBS
            | {"OffsetForLeaderEpoch 2", "DescribeLogDirs", "Metadata 9", "Fetch 7", "Fetch 10", "Fetch 12"},
            events=REFUSES_CONFIGS | UNSUPPORTED,
            acls="not-supported",
        ),
        ("event-hubs", TARGET): Expectation(
            lost=(CONFIGS, NO_CODECS, NO_PRODUCERS, WHOLE_CONFIGS, NO_IDS, NO_ACLS, NO_RIGHTS, FEW_TOPICS),
            hazards=CONTROL_CONFIGS | {"LS029", "LS030", "LS038"},
            lacks=OF_EVENT_HUBS
            | {"CreateAcls", "DescribeProducers", "IncrementalAlterConfigs", "AddPartitionsToTxn", "Produce 8"},
            events=REFUSES_CONFIGS | UNSUPPORTED | {"CodecRefused"},
            acls="not-supported",
        ),
        ("no-producer-ids", SOURCE): Expectation(),
        ("no-producer-ids", TARGET): Expectation(
            result=Result.IN_TRANSACTIONS, lost=(MARKERS,), events=frozenset({"AppendModeChosen"})
        ),
        ("no-producer-id-given", SOURCE): Expectation(),
        ("no-producer-id-given", TARGET): Expectation(
            result=Result.READ_BACK,
            lost=(FROZEN, DOUBLED),
            hazards=frozenset({"LS029"}),
            lacks=frozenset({"InitProducerId", "AddPartitionsToTxn"}),
            events=frozenset({"AppendModeChosen"}),
        ),
        ("lying-epochs", SOURCE): Expectation(lost=(LYING,), events=UNSUPPORTED),
        ("lying-epochs", TARGET): Expectation(),
        ("kafka-2.1", SOURCE): Expectation(
            lost=(NO_IDS, NO_RIGHTS),
            hazards=frozenset({"LS029"}),
            lacks=OF_OLD_METADATA | {"Metadata 9", "Fetch 12", "DescribeQuorum 1", "DescribeClientQuotas"},
        ),
        ("kafka-2.1", TARGET): Expectation(
            lost=(NO_PRODUCERS, WHOLE_CONFIGS, NO_IDS, NO_RIGHTS),
            hazards=frozenset({"LS029"}),
            lacks=OF_OLD_METADATA
            | {"DescribeProducers", "IncrementalAlterConfigs", "Produce 8", "DescribeQuorum 1", "DescribeClientQuotas"},
            events=UNSUPPORTED,
        ),
    }
)
