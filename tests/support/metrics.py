"""What a service's /metrics page says, as values."""

from prometheus_client.parser import text_string_to_metric_families

from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess
from tests.support.watched import watched
from tools.docs.metrics import declared_by

Page = dict[str, list[tuple[dict[str, str], float]]]
"""By name of a sample: label values and value of each."""

TRANSFORMING = frozenset(name for name in declared_by("data-plane") if name.startswith("lockstep_transform_"))
"""The metrics that only a flow with transforms has."""


def read_page(text: str) -> Page:
    """Return the samples of a page of metrics. Raises ValueError if it is none."""
    page: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            page.setdefault(sample.name, []).append((sample.labels, sample.value))
    return page


def values(page: Page, name: str, **labels: str) -> list[float]:
    """Return the value of every series that has these labels."""
    return [value for own, value in page.get(name, []) if labels.items() <= own.items()]


def wait_for_value(process: ServiceProcess, least: float, name: str, *, within: float = 60.0, **labels: str) -> float:
    """Return the sum of the series with these labels, once it is at least so much."""

    def enough() -> float:
        total = sum(values(read_page(process.page("/metrics")[1]), name, **labels))
        assert total >= least, f"{name}{labels} is {total}"
        return total

    return wait_until(enough, within=within, every=0.1, what=f"{name} reaches {least}")


def wait_for_series(process: ServiceProcess, count: int, name: str, *, within: float = 60.0, **labels: str) -> None:
    """Return once the page has so many series with these labels."""

    def are_shown() -> bool:
        return len(values(read_page(process.page("/metrics")[1]), name, **labels)) == count

    wait_until(are_shown, within=within, every=0.1, what=f"{name} has {count} series")


def wait_for_all_declared(
    process: ServiceProcess, service: str, *, elsewhere: frozenset[str] = frozenset(), within: float = 60.0
) -> Page:
    """Return the page once it shows each metric that the service declares, and every series of it that an alert or a
    panel of the dashboard selects. It never shows another metric. `elsewhere`: metrics for which another test waits."""
    declared = declared_by(service) - elsewhere
    selectors = [selector for selector in watched() if selector.metric in declared]

    def all_of_them() -> Page | None:
        page = read_page(process.page("/metrics")[1])
        assert page.keys() >= declared, declared - page.keys()
        unseen = [
            selector
            for selector in selectors
            if not any(selector.selects(labels) for labels, _ in page[selector.metric])
        ]
        assert unseen == []
        return page

    page = wait_until(all_of_them, within=within, every=0.25, what=f"every metric of {service}")
    assert page.keys() - elsewhere == declared, page.keys() - declared
    return page
