"""`docs/reference/clusters.md`, from the profiles of clusters and what tests expect of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.support.cluster_expectations import EXPECTED, Expectation, Role
from tests.support.documented_clusters import DOCUMENTED
from tests.support.known_clusters import KNOWN_CLUSTERS, Document, KnownCluster
from tools.docs.pages import DOCS, code, table, wrapped

LINE = 160
PAGE = DOCS / "reference" / "clusters.md"
HEAD = """# Clusters

What Lockstep does with services and brokers that are no Apache Kafka of today. `make docs` generates this page from
`tests/support/known_clusters.py`, `cluster_expectations.py` and `documented_clusters.py`.
[Broker versions](broker-versions.md) has Apache Kafka itself, and what replaces a request that a cluster does not know.
**A profile is not the service.** Try your own cluster with `lockstep doctor` and `lockstep plan` first.
The test copies 20,000 records of all codecs against a profile, with a consumer group, a SIGKILL and a switchover.

| word | it means |
|---|---|
| exact | each record is copied once and in order, also over a kill. `tests/e2e/test_known_clusters.py` has shown it |
| by its documents | nothing was run. The documents say nothing against it |
| does not work | the documents name something that is lacking, without which Lockstep copies nothing |

ACLs are `in-sync`, if a cluster's table has no other [state](../guides/acls.md#states).
"""


def page() -> str:
    """Return the whole page."""
    rows = [
        *(_row(name, cluster) for name, cluster in KNOWN_CLUSTERS.items()),
        *((each.title, each.source, each.target, _documents(each.documents)) for each in DOCUMENTED),
    ]
    sections = (part for name, cluster in KNOWN_CLUSTERS.items() for part in _section(name, cluster))
    return "\n\n".join([HEAD.rstrip(), table("cluster | as source | as target | documents", rows), *sections]) + "\n"


def _row(name: str, cluster: KnownCluster) -> tuple[str, ...]:
    shown = (EXPECTED[name, role].result.value for role in Role)
    return f"[{cluster.title}](#{_anchor(cluster.title)})", *shown, ""


def _section(name: str, cluster: KnownCluster) -> Iterator[str]:
    roles = [EXPECTED[name, role] for role in Role]
    shown = [(title, *(show(expected) for expected in roles)) for title, show in SHOWN.items()]
    rows = (
        (title, source, "the same" if source == target else target)
        for title, source, target in shown
        if source or target
    )
    yield f"## {cluster.title}"
    yield table(" | as source | as target", rows)
    if cluster.documents:
        yield wrapped(f"Documents: {_documents(cluster.documents)}.", LINE)
    if cluster.guesses:
        yield wrapped(f"Assumed, because no document says it: {_sentences(cluster.guesses)}", LINE)


def _sentences(parts: Iterable[str]) -> str:
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts)


SHOWN: Mapping[str, Callable[[Expectation], str]] = {
    "what differs": lambda expected: _sentences(expected.lost),
    "[`plan`](plan-hazards.md)": lambda expected: code(sorted(expected.hazards)),
    "[events](events.md)": lambda expected: code(sorted(expected.events)),
    "[ACLs](../guides/acls.md#states)": lambda expected: "" if expected.acls == "in-sync" else f"`{expected.acls}`",
    "set": lambda expected: code(sorted(expected.advice)),
}
"""Rows of a cluster's table. One that is empty for both roles is left out."""


def _documents(documents: tuple[Document, ...]) -> str:
    return ", ".join(f"[{number}]({each.address}) ({each.read})" for number, each in enumerate(documents, start=1))


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")
