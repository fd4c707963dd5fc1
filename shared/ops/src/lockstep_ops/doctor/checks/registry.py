"""Every check of `lockstep doctor`.

`docs/reference/doctor.md` is made of `CHECKS`. A code never changes its meaning, and is never used again.
"""

from lockstep_ops.doctor.checks.check import Category, DoctorCheck

PYTHON = DoctorCheck(
    "LD101",
    "Python",
    "The version of the Python that runs `lockstep`.",
    "Install Python 3.11 to 3.13.",
    category=Category.MACHINE,
)
JAVA = DoctorCheck(
    "LD102",
    "Java",
    "Spark runs on Java 17 or newer. `JAVA_HOME` counts first, then `PATH`.",
    "Install Java 17 or newer, or point `JAVA_HOME` at one.",
    category=Category.MACHINE,
)
SPARK = DoctorCheck(
    "LD103",
    "Spark",
    "PySpark is installed for the Python that runs `lockstep`.",
    "Install `lockstep-kafka[all]` from the requirements file of a release, or use the image.",
    category=Category.MACHINE,
)
MEMORY = DoctorCheck(
    "LD104",
    "memory",
    "Memory that is available here, within the limit of the container. All services of one flow took 1.1 GiB in the "
    "[bench](../internals/bench-figures.md).",
    "Give the machine or the container more memory, or lower `tasks.max` "
    "([size and tune](../guides/size-and-tune.md)).",
    category=Category.MACHINE,
)
OPEN_FILES = DoctorCheck(
    "LD105",
    "open files",
    "The limit of open files of a process. A service has a few connections to each broker.",
    "Raise the limit: `ulimit -n 65536`, or `LimitNOFILE=65536` in the systemd unit.",
    category=Category.MACHINE,
)
POD_DNS = DoctorCheck(
    "LD106",
    "DNS of the pod",
    "Only in a pod: the cluster's own DNS resolves `kubernetes.default.svc`.",
    "Check `dnsPolicy` of the pod, the pods of CoreDNS, and a NetworkPolicy that closes port 53.",
    category=Category.MACHINE,
)
SECRETS = DoctorCheck(
    "LD107",
    "mounted files",
    "Only in a pod: each file that the configuration came from, or names, can be read.",
    "Mount the Secret or ConfigMap, and let the pod's user read it (`defaultMode`, `fsGroup`).",
    category=Category.MACHINE,
)

NAMES = DoctorCheck(
    "LD201",
    "addresses of a name",
    "Each name in `bootstrap.servers`, with every address that it resolves to here.",
    "Check the spelling, `/etc/resolv.conf` and `/etc/hosts`. Run it where the services run.",
    category=Category.NAMES,
)

PORTS = DoctorCheck(
    "LD301",
    "port of each address",
    "A TCP connection to each address of each bootstrap server. Clients choose one of them, so each should work.",
    "Check the port, the firewall, and that a broker listens there.",
    category=Category.CONNECTION,
)
ADVERTISED = DoctorCheck(
    "LD302",
    "advertised listeners",
    "Each broker accepts a connection at the address that it advertises. Clients connect there after the bootstrap.",
    "Set `advertised.listeners` of the broker to an address that is known and open here.",
    category=Category.CONNECTION,
)

STORES = DoctorCheck(
    "LD401",
    "own stores",
    "The truststore and the keystore of the file can be read.",
    "Check `ssl.truststore.*` and `ssl.keystore.*`: location, type and password.",
    category=Category.TLS,
)
TLS_SPOKEN = DoctorCheck(
    "LD402",
    "TLS handshake",
    "The broker's port answers a TLS handshake with a version and a cipher that both sides have.",
    "Check `security.protocol` and the port, then `ssl.enabled.protocols` and `ssl.cipher.suites`.",
    category=Category.TLS,
)
BROKER_CERTIFICATE = DoctorCheck(
    "LD403",
    "days left of the brokers' certificates",
    "When the first of the brokers' certificates ends. Below 30 days it is a warning.",
    "Renew the broker's certificate.",
    category=Category.TLS,
)
CHAIN = DoctorCheck(
    "LD404",
    "chain",
    "An authority that the truststore has signed each broker's certificate.",
    "Put the authority that signed it into `ssl.truststore.location`.",
    category=Category.TLS,
)
CERTIFICATE_NAME = DoctorCheck(
    "LD405",
    "name in the certificate",
    "The name that the broker is reached by is in its certificate.",
    "Reach the brokers by a name in their certificates (`bootstrap.servers`, `advertised.listeners`), or renew these.",
    category=Category.TLS,
)
OWN_CERTIFICATE = DoctorCheck(
    "LD406",
    "days left of our certificate",
    "When the certificate in our keystore ends. Below 30 days it is a warning.",
    "Renew the certificate. Services take up the new file without a restart "
    "([rotation](../guides/rotate-credentials.md)).",
    category=Category.TLS,
)
TRUSTED_CERTIFICATES = DoctorCheck(
    "LD407",
    "days left of the authorities",
    "When the certificates in our truststore end. Below 30 days it is a warning.",
    "Add the authority's new certificate to the truststore.",
    category=Category.TLS,
)

BROKER_ANSWERS = DoctorCheck(
    "LD501",
    "a broker answers",
    "What listens there speaks Kafka's protocol with the TLS and login of `security.protocol`, and accepts our "
    "certificate if it wants one.",
    "Give addresses of brokers, and the security protocol of that listener.",
    category=Category.LOGIN,
)
TOKEN = DoctorCheck(
    "LD502",
    "access token",
    "Only for OAUTHBEARER and AWS_MSK_IAM: there is a token to log in with.",
    "Check the token endpoint, its certificate, and the client's id and secret; for a cloud, its credentials on this "
    "host.",
    category=Category.LOGIN,
)
MECHANISM = DoctorCheck(
    "LD503",
    "SASL mechanism",
    "The broker offers the mechanism of the file.",
    "Set `sasl.mechanism` to one that the broker offers, or add it to `sasl.enabled.mechanisms` of the listener.",
    category=Category.LOGIN,
)
CREDENTIALS = DoctorCheck(
    "LD504",
    "login",
    "The broker lets us in.",
    "Check `sasl.jaas.config`, and that the user exists there with this password.",
    category=Category.LOGIN,
)

REACHED = DoctorCheck(
    "LD601",
    "cluster answers",
    "Lockstep's own client gets the list of brokers, and reaches each of them.",
    "See [login and rights](../troubleshoot/login-and-rights.md).",
    category=Category.CLUSTER,
)
VERSIONS = DoctorCheck(
    "LD602",
    "API versions",
    "Each broker knows the requests that its cluster's flows cannot do without, in a version that Lockstep knows.",
    "Look up what a source and a target must know ([broker versions](broker-versions.md)).",
    category=Category.CLUSTER,
)
CLOCK = DoctorCheck(
    "LD603",
    "clock",
    "The clock of the active controller, or of a broker, compared with this machine's. Over 30 s is a warning. Over an "
    "hour brokers refuse records that this machine dates.",
    "Synchronize the clocks of both hosts (NTP).",
    category=Category.CLUSTER,
)
ROUND_TRIP = DoctorCheck(
    "LD604",
    "round trip",
    "How long a broker takes to answer a small request: the median of nine.",
    "See [far clusters](../guides/far-clusters.md).",
    category=Category.CLUSTER,
)
TWO_CLUSTERS = DoctorCheck(
    "LD605",
    "two clusters",
    "The source and the target have different cluster ids.",
    "Give each alias the address of its own cluster.",
    category=Category.CLUSTER,
)

PRODUCT = DoctorCheck(
    "LD651",
    "kind of cluster",
    "What the cluster looks like, by what its brokers announce, its id and its host names. It is a guess, by which "
    "nothing is decided.",
    "",
    category=Category.CAPABILITIES,
)
REQUESTS = DoctorCheck(
    "LD652",
    "requests without which it goes on",
    "Which requests the cluster does not announce, and what is so without each "
    "([broker versions](broker-versions.md#requests-that-a-cluster-does-not-know)). It is a warning if a part of the "
    "work is not done, or done in another way.",
    "Nothing has to be done if you can do without. Else upgrade the brokers.",
    category=Category.CAPABILITIES,
)

RIGHTS = DoctorCheck(
    "LD701",
    "rights",
    "Each [right that the flow needs](acls-needed.md), as far as brokers can be asked. They cannot be asked about "
    "topics that do not exist yet, nor about transactional ids. A source that shows no topic of the flow, and would "
    "hide one, is not checked.",
    "Run the `kafka-acls` command of the line.",
    category=Category.RIGHTS,
)

MESSAGE_SIZE = DoctorCheck(
    "LD801",
    "largest message",
    "The target accepts batches as large as the source does. If it does not, a larger batch halts its partition.",
    "Raise `message.max.bytes` of the target's brokers, or `max.message.bytes` of the topic there.",
    category=Category.LIMITS,
)
REQUEST_SIZE = DoctorCheck(
    "LD802",
    "max.request.size",
    "`max.request.size` of the file is not above the target's limit. It has no effect on records: the target's limit "
    "counts.",
    "Raise `message.max.bytes` of the target's brokers, or remove the line.",
    category=Category.LIMITS,
)
REPLICATION_FACTOR = DoctorCheck(
    "LD803",
    "replication factor",
    "Each cluster has as many brokers as the topics to be created have replicas. If not, topics get fewer.",
    "Start more brokers, or lower the replication factors of the file.",
    category=Category.LIMITS,
)
QUOTAS = DoctorCheck(
    "LD804",
    "client quotas",
    "A quota for our user or client id lets at least one batch of the largest size pass each second.",
    "Raise the quota with `kafka-configs`, or limit the flow with `lockstep.max.bytes.per.second`.",
    category=Category.LIMITS,
)
TIMESTAMPS = DoctorCheck(
    "LD805",
    "timestamps",
    "Copies keep the timestamps of records, unless the target dates records itself (`LogAppendTime`).",
    "Set `log.message.timestamp.type=CreateTime` on the target's brokers, or `message.timestamp.type` on the topic.",
    category=Category.LIMITS,
)
UNCLEAN_ELECTION = DoctorCheck(
    "LD806",
    "unclean leader election",
    "With `unclean.leader.election.enable=true` a cluster may lose acknowledged records.",
    "Set it to `false`, unless availability is worth more than records. "
    "[No silent loss](no-silent-loss.md) says what follows.",
    category=Category.LIMITS,
)
CONTROL_TOPICS = DoctorCheck(
    "LD807",
    "control topics",
    "Topics of Lockstep and of MirrorMaker 2 that exist keep what is written to them, and take it: cleanup policy, "
    "partitions, retention, timestamps, in-sync replicas.",
    "Run the command of the line. Services do it themselves if they may: AlterConfigs on the topic.",
    category=Category.LIMITS,
)
NEW_CONTROL_TOPICS = DoctorCheck(
    "LD808",
    "control topics to create",
    "Each cluster is asked whether it would create the topics of Lockstep and of MirrorMaker 2 that it lacks. Nothing "
    "is created. A config that it refuses is left out, and another replication factor than the wanted one may be taken "
    "([control topics](control-topics.md#what-a-cluster-refuses)).",
    "Change what the line names, on the cluster or in the file. Or create the topic by hand.",
    category=Category.LIMITS,
)

LIMITS = (
    *(MESSAGE_SIZE, REQUEST_SIZE, REPLICATION_FACTOR, QUOTAS, TIMESTAMPS, UNCLEAN_ELECTION),
    *(CONTROL_TOPICS, NEW_CONTROL_TOPICS),
)
"""The checks of limits, in the order of the page."""

HEARTBEAT = DoctorCheck(
    "LD901",
    "heartbeat",
    "A heartbeat of the flow arrives on the target. It is awaited if a replica of the service heartbeat runs, by "
    "`lockstep probe` in any case.",
    "Read `lockstep status` and the log of the service heartbeat.",
    category=Category.FLOW,
)
CANARY = DoctorCheck(
    "LD902",
    "canary",
    "Only with `--canary-topic`: a record that is written on the source arrives on the target.",
    "Read `lockstep status`.",
    category=Category.FLOW,
)
SCRATCH_TOPIC = DoctorCheck(
    "LD903",
    "scratch topic",
    "Only with `--bandwidth`: a topic on the target that is created, written, read and removed. What a killed run left "
    "is removed too.",
    "Grant Create, Write, Read and Delete on the prefix of the line, or remove the topic that is named.",
    category=Category.FLOW,
)
WRITE_RATE = DoctorCheck(
    "LD904",
    "write to the target",
    "Only with `--bandwidth`: bytes a second that this machine appends to the scratch topic, acknowledged by all "
    "in-sync replicas.",
    "Check the network, and quotas of the user.",
    category=Category.FLOW,
)
READ_RATE = DoctorCheck(
    "LD905",
    "read from the source",
    "Only with `--bandwidth`: bytes a second that arrive here from the largest topics that the flow mirrors.",
    "Check the network, and quotas of the user.",
    category=Category.FLOW,
)
EXPECTED_RATE = DoctorCheck(
    "LD906",
    "expected rate",
    "Only with `--bandwidth`: the lower one of both rates, and how many slots copy that much. One slot copies about "
    "180 MB a second, 70 MB over TLS.",
    "Set `tasks.max` to the number of the line. Each slot needs a core.",
    category=Category.FLOW,
)

BROKER_CLOCK = DoctorCheck(
    "LD907",
    "clock of a broker",
    "Only with `--bandwidth`: the time that a broker of the target gave to a record, compared with this machine's "
    "clock. Without it nothing is written, and LD603 has what brokers say without that.",
    "Synchronize the clocks of both hosts (NTP).",
    category=Category.FLOW,
)

BANDWIDTH = (SCRATCH_TOPIC, WRITE_RATE, READ_RATE, EXPECTED_RATE, BROKER_CLOCK)
"""The checks that are made only with `--bandwidth`."""

CHECKS: tuple[DoctorCheck, ...] = (
    *(PYTHON, JAVA, SPARK, MEMORY, OPEN_FILES, POD_DNS, SECRETS),
    NAMES,
    *(PORTS, ADVERTISED),
    *(STORES, TLS_SPOKEN, BROKER_CERTIFICATE, CHAIN, CERTIFICATE_NAME, OWN_CERTIFICATE, TRUSTED_CERTIFICATES),
    *(BROKER_ANSWERS, TOKEN, MECHANISM, CREDENTIALS),
    *(REACHED, VERSIONS, CLOCK, ROUND_TRIP, TWO_CLUSTERS),
    *(PRODUCT, REQUESTS),
    RIGHTS,
    *LIMITS,
    *(HEARTBEAT, CANARY, *BANDWIDTH),
)
"""Each check, in the order in which its category judges. After a fatal finding the later ones are not checked."""


def checks_in(category: Category) -> tuple[DoctorCheck, ...]:
    """Return the checks of a category, in the order of `CHECKS`."""
    return tuple(check for check in CHECKS if check.category is category)
