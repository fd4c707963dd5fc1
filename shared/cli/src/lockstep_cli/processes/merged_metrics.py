"""One page of the metrics of several services. Pure."""

import re
from collections.abc import Mapping

_SERVICE_LABEL = re.compile(r'[{,]service="')
"""The beginning of a label `service`. In the value of another label the quote would be escaped."""


def merge_metrics(pages: Mapping[str, str]) -> str:
    """Return the pages, by service, as one page in Prometheus' text format.

    Each family is on it once, with the samples of all services. A series without a label `service` gets the name of
    its service: series of two services never add up, and none hides another.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for service, page in pages.items():
        family = ""
        for line in page.splitlines():
            if line.startswith("# HELP ") or line.startswith("# TYPE "):
                kind, family = line.split(" ", 3)[1:3]
                head = heads.setdefault(family, [])
                if not any(present.startswith(f"# {kind} ") for present in head):
                    head.append(line)
            elif line and not line.startswith("#"):
                samples.setdefault(family, []).append(_with_service(line, service))
    return "".join(f"{line}\n" for family in samples for line in (*heads.get(family, ()), *samples[family]))


def _with_service(sample: str, service: str) -> str:
    """Return the line of a sample, with the service among its labels."""
    name_end = re.match(r"[^{\s]*", sample).end()  # type: ignore[union-attr]  # it matches the empty text too
    if not sample.startswith("{", name_end):
        return f'{sample[:name_end]}{{service="{service}"}}{sample[name_end:]}'
    if _SERVICE_LABEL.search(sample):
        return sample
    rest = sample[name_end + 1 :]
    return f'{sample[:name_end]}{{service="{service}"{"" if rest.startswith("}") else ","}{rest}'
