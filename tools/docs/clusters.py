"""The tables of `clusters.md`, from the profiles of clusters and what tests expect of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.support.cluster_expectations import EXPECTED, Expectation, Role
from tests.support.documented_clusters import DOCUMENTED
from tests.support.known_clusters import KNOWN_CLUSTERS, Document, KnownCluster
from tools.docs.pages import DOCS, code, table, wrapped

LINE = 160
PAGE = DOCS / "reference" / "clusters.md"


def blocks() -> Mapping[str, str]:
    """Return the table of all clusters, and what is to be said of each."""
    rows = [
        *(_row(name, cluster) for name, cluster in KNOWN_CLUSTERS.items()),
        *((each.title, each.source, each.target, _documents(each.documents)) for each in DOCUMENTED),
    ]
    sections = (part for name, cluster in KNOWN_CLUSTERS.items() for part in _section(name, cluster))
    return {"clusters": "\n\n".join([table("cluster | as source | as target | documents", rows), *sections])}


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
        yield wrapped(f"Assumed: {_sentences(cluster.guesses)}", LINE)


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
