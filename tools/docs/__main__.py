"""`make docs`: writes the pages, the blocks of pages and the schemas that follow from declarations in the code."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tools.docs import (
    address,
    bench_figures,
    chart,
    client_keys,
    clusters,
    commands,
    configuration,
    conformance,
    console_api,
    events,
    findings,
    metrics,
    permissions,
    plan_schema,
    sasl,
    schema_page,
    schemas,
    strimzi,
    values_schema,
)
from tools.docs.pages import filled

WHOLE: Mapping[Path, Callable[[], str]] = {
    conformance.PAGE: lambda: conformance.page(conformance.read_table(), conformance.named_tests()),
    values_schema.SCHEMA: values_schema.whole,
}
TABLES = (
    *(bench_figures, chart, client_keys, clusters, commands, configuration, console_api, events, metrics),
    *(permissions, sasl, schema_page, strimzi),
)
BLOCKS: Mapping[Path, Callable[[], Mapping[str, str]]] = {
    **{module.PAGE: module.blocks for module in TABLES},
    **{page: partial(findings.blocks, page) for page in findings.PAGES},
}
SCHEMAS = (schemas.generated, plan_schema.generated)


def generated() -> Iterator[tuple[Path, str]]:
    """Yield each generated file, with the text that it has to have."""
    yield from ((path, page()) for path, page in WHOLE.items())
    yield from ((path, filled(path.read_text("utf-8"), blocks())) for path, blocks in BLOCKS.items())
    for made in SCHEMAS:
        yield from ((schemas.FOLDER / f"{name}.json", schemas.text_of(schema)) for name, schema in made().items())


def main() -> None:
    """Write the files, which have the project's address by then."""
    address.rewrite()
    for path, text in generated():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
