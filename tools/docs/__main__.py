"""`make docs`: writes the pages, the blocks of pages and the schemas that follow from declarations in the code."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools.bench import recorded
from tools.docs import (
    address,
    bench_figures,
    chart,
    client_keys,
    clusters,
    commands,
    configuration,
    conformance,
    doctor,
    events,
    metrics,
    permissions,
    plan_hazards,
    plan_schema,
    sasl,
    schema_page,
    schemas,
    strimzi,
    switch_reasons,
    values_schema,
)
from tools.docs.pages import filled

WHOLE: Mapping[Path, Callable[[], str]] = {
    bench_figures.PAGE: lambda: bench_figures.page(recorded.read()),
    clusters.PAGE: clusters.page,
    conformance.PAGE: lambda: conformance.page(conformance.read_table(), conformance.named_tests()),
    values_schema.SCHEMA: values_schema.whole,
}
BLOCKS: Mapping[Path, Callable[[], Mapping[str, str]]] = {
    module.PAGE: module.blocks
    for module in (chart, client_keys, commands, configuration, doctor, events, metrics, permissions, plan_hazards)
} | {module.PAGE: module.blocks for module in (sasl, schema_page, strimzi, switch_reasons)}
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
