"""The whole life of a flow one of whose clusters answers by a profile, through a proxy."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.broker import Broker, started
from tests.support.cluster_expectations import Role
from tests.support.cluster_profile import ClusterProfile
from tests.support.proxy import Proxy
from tests.support.whole_life import CODECS, LifeCluster, WholeLife

Brokers = tuple[Broker, Broker]
"""The source and the target."""


@contextmanager
def profiled_brokers() -> Iterator[Brokers]:
    """Start two brokers of their own behind proxies: profiles cut the connections of everybody behind a proxy."""
    with ExitStack() as stack:
        a, b = (Broker(alias, authorizer=True, behind=stack.enter_context(Proxy())) for alias in ("A", "B"))
        stack.enter_context(started(a, b))
        yield a, b


def begin_life(
    folder: Path,
    brokers: Brokers,
    role: Role,
    profile: ClusterProfile,
    *lines: str,
    lacks: frozenset[str] = frozenset(),
    codecs: Sequence[str] = CODECS,
) -> WholeLife:
    """Return a life in which the cluster with this role answers by the profile, and the other one as it is.

    Args:
        folder: Where the file of the flow is written.
        brokers: As `profiled_brokers` starts them.
        role: Of the cluster with the profile.
        profile: Says how that cluster answers.
        lines: What the file has beside what every file has.
        lacks: The requests that cluster has to be said to lack.
        codecs: Those in which records are written.
    """
    ends: dict[Role, LifeCluster] = {}
    for end, broker in zip((Role.SOURCE, Role.TARGET), brokers, strict=True):
        assert broker.proxy is not None
        broker.proxy.answer_as(profile if end is role else ClusterProfile())
        lacking = lacks if end is role else frozenset[str]()
        ends[end] = LifeCluster(bootstrap=broker.bootstrap, address=broker.proxy.bootstrap, lacks=lacking)
    return WholeLife(folder, ends[Role.SOURCE], ends[Role.TARGET], *lines, codecs=codecs)
