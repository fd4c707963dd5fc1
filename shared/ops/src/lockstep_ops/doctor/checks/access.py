"""Checks of the way to a cluster: names, connections and the login. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access_facts import AccessFacts, AddressConnection, HostAddresses, LoginOutcome
from lockstep_ops.doctor.checks.check import SHOWN, CheckFinding
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import count_text, shorten
from lockstep_state.opening_step import OpeningStep


def judge_names(facts: AccessFacts) -> Iterator[CheckFinding]:
    """Yield one finding for each bootstrap server.

    The last one is fatal if no bootstrap server has an address.
    """
    lost = all(not host.addresses for host in facts.hosts)
    for host in facts.hosts:
        if host.addresses:
            yield registry.NAMES.ok(facts.alias, _resolved(host))
            continue
        text = f"{host.host} cannot be resolved: {host.reason}"
        if lost:
            yield registry.NAMES.failed(facts.alias, text, is_fatal=host is facts.hosts[-1])
        else:
            yield registry.NAMES.warning(facts.alias, f"{text}. Other bootstrap servers can be")


def _resolved(host: HostAddresses) -> str:
    if host.is_literal:
        return f"{host.host} is an address"
    kinds = [
        count_text(sum(":" in address for address in host.addresses), "IPv6 address", "IPv6 addresses"),
        count_text(sum(":" not in address for address in host.addresses), "IPv4 address", "IPv4 addresses"),
    ]
    counted = ", ".join(kind for kind in kinds if not kind.startswith("0 "))
    return f"{host.host} is {', '.join(host.addresses)} ({counted})"


def judge_connection(facts: AccessFacts) -> Iterator[CheckFinding]:
    """Yield findings about bootstrap servers, then about advertised listeners.

    The listeners are known only after the login.
    """
    by_server: defaultdict[tuple[str, int], list[AddressConnection]] = defaultdict(list)
    for connection in facts.connections:
        by_server[connection.host, connection.port].append(connection)
    unreachable = all(connection.reason for connection in facts.connections)
    for ordinal, ((host, port), connections) in enumerate(by_server.items(), 1):
        yield _port(facts.alias, f"{host}:{port}", connections, lost=unreachable, is_last=ordinal == len(by_server))
    if unreachable:
        return
    yield _advertised(facts)


def _port(
    alias: str, server: str, connections: Sequence[AddressConnection], *, lost: bool, is_last: bool
) -> CheckFinding:
    closed = [connection for connection in connections if connection.reason]
    if not closed:
        slowest = max(connection.took_ms for connection in connections)
        addresses = "" if len(connections) == 1 else f" at each of {len(connections)} addresses"
        return registry.PORTS.ok(alias, f"{server} accepts connections{addresses}, within {slowest:.1f} ms")
    reasons = [f"{connection.address}: {connection.reason}" for connection in closed]
    text = f"{server}: {shorten(reasons, SHOWN, '; ')}"
    if lost:
        return registry.PORTS.failed(alias, text, is_fatal=is_last)
    if len(closed) == len(connections):
        return registry.PORTS.warning(alias, f"{text}. Other bootstrap servers accept connections")
    return registry.PORTS.warning(alias, f"{text}. {len(connections) - len(closed)} of its addresses work")


def _advertised(facts: AccessFacts) -> CheckFinding:
    check = registry.ADVERTISED
    if not facts.brokers:
        reason = facts.brokers_trouble or "they are known after the login"
        return check.unknown(facts.alias, f"the brokers' own addresses are not known: {reason}")
    unreachable = [broker for broker in facts.brokers if broker.reason]
    if not unreachable:
        places = shorten([f"{broker.host}:{broker.port}" for broker in facts.brokers], SHOWN, "; ")
        return check.ok(facts.alias, f"{count_text(len(facts.brokers), 'broker')} can be reached: {places}")
    count = f"{count_text(len(unreachable), 'broker')} of {len(facts.brokers)}"
    reasons = shorten([f"{broker.place} ({broker.reason})" for broker in unreachable], SHOWN, "; ")
    return check.failed(facts.alias, f"{count} cannot be reached: {reasons}", probe_exit=Exit.NO_ANSWER)


def judge_login(facts: AccessFacts) -> Iterator[CheckFinding]:
    """Yield the findings of the login, step by step.

    A broker answers, a token is there, the broker offers the mechanism, and it accepts the credentials.
    """
    outcome = facts.login
    if outcome is None:
        return
    broker = registry.BROKER_ANSWERS
    if outcome.step in (OpeningStep.CONNECTION, OpeningStep.VERSIONS):
        yield broker.failed(facts.alias, f"{outcome.place}: {outcome.reason}", is_fatal=True)
        return
    if not outcome.is_broker:
        text = f"{outcome.place} is a KRaft controller's address, which serves no clients"
        yield broker.failed(facts.alias, text, is_fatal=True)
        return
    yield broker.ok(facts.alias, f"{outcome.place} speaks Kafka's protocol")
    if outcome.mechanism:
        yield from _sasl(facts.alias, outcome)
    elif outcome.step is OpeningStep.OPEN:
        user = f": brokers know us as {outcome.login}" if outcome.login else ""
        yield registry.CREDENTIALS.ok(facts.alias, f"no SASL login is configured ({outcome.protocol}){user}")


def _sasl(alias: str, outcome: LoginOutcome) -> Iterator[CheckFinding]:
    offered = f"; the broker offers {', '.join(outcome.offered)}" if outcome.offered else ""
    if outcome.step is OpeningStep.TOKEN:
        yield registry.TOKEN.failed(alias, outcome.reason, is_fatal=True)
        return
    if outcome.has_tokens:
        yield registry.TOKEN.ok(alias, "there is an access token")
    if outcome.step is OpeningStep.MECHANISM:
        missing = outcome.offered and outcome.mechanism not in outcome.offered
        text = f"{outcome.mechanism} is not offered{offered}" if missing else f"{outcome.mechanism}: {outcome.reason}"
        yield registry.MECHANISM.failed(alias, text, is_fatal=True)
        return
    yield registry.MECHANISM.ok(alias, f"{outcome.mechanism} is offered")
    if outcome.step is OpeningStep.CREDENTIALS:
        yield registry.CREDENTIALS.failed(alias, outcome.reason, is_fatal=True)
        return
    yield registry.CREDENTIALS.ok(alias, f"the broker lets in {outcome.login}")
