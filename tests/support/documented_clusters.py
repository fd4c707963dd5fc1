"""Clusters of which no profile is made: what their documents say for or against them."""

from dataclasses import dataclass

from tests.support.known_clusters import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedCluster:
    """A service, and what follows from its documents for each role, as the page of clusters shows it."""

    title: str
    source: str
    target: str
    documents: tuple[Document, ...]


WORKS = "by its documents"
DOCUMENTED = (
    DocumentedCluster(
        title="Google Managed Service for Apache Kafka",
        source=WORKS,
        target=WORKS,
        documents=(
            Document("https://cloud.google.com/managed-service-for-apache-kafka/docs/access-control", "2026-11"),
        ),
    ),
    DocumentedCluster(
        title="Amazon MSK, provisioned and Express",
        source=WORKS,
        target=f"{WORKS}; on Express the replication factor is 3",
        documents=(
            Document(
                "https://docs.aws.amazon.com/msk/latest/developerguide/msk-configuration-express-read-only.html",
                "2026-11",
            ),
        ),
    ),
    DocumentedCluster(
        title="Aiven for Apache Kafka",
        source=WORKS,
        target=WORKS,
        documents=(Document("https://github.com/aiven/devportal/pull/2242", "2026-11"),),
    ),
    DocumentedCluster(
        title="AutoMQ",
        source=WORKS,
        target=WORKS,
        documents=(Document("https://docs.automq.com/automq-cloud/using-automq-for-kafka/restrictions", "2026-11"),),
    ),
    DocumentedCluster(
        title="IBM Event Streams",
        source=WORKS,
        target=f"{WORKS}; configs of segments are left out, but for the Enterprise plan",
        documents=(Document("https://cloud.ibm.com/docs/EventStreams?topic=EventStreams-kafka_java_api", "2026-11"),),
    ),
    DocumentedCluster(
        title="Oracle OCI Streaming",
        source=f"{WORKS}, if no topic of Lockstep is on it",
        target="does not work: it has no compacted topics",
        documents=(
            Document("https://docs.cloud.oracle.com/iaas/Content/Streaming/Tasks/kafkacompatibility.htm", "2026-11"),
            Document("https://github.com/helidon-io/helidon/issues/6718", "2026-11"),
        ),
    ),
)
