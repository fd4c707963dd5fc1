"""What a service's /metrics page says, as values."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.harness.eventually import wait_until
from tests.harness.services import ServiceProcess
from tests.pages.metrics import declared_by

__all__ = ["Page", "read_page", "wait_for_all_declared"]

Page = dict[str, list[tuple[dict[str, str], float]]]
"""By name of a sample: label values and value of each."""


def read_page(text: str) -> Page:
    """Raises ValueError for what is no page of metrics."""
    found: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def wait_for_all_declared(process: ServiceProcess, service: str, *, within: float = 60.0) -> Page:
    """The page once it shows each metric that the service declares. It never shows another one."""

    def all_of_them() -> Page | None:
        page = read_page(process.page("/metrics")[1])
        assert page.keys() >= declared_by(service), declared_by(service) - page.keys()
        return page

    page = wait_until(all_of_them, within=within, every=0.25, what=f"every metric of {service}")
    assert page.keys() == declared_by(service), page.keys() - declared_by(service)
    return page
