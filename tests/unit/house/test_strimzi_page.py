"""Each declared field says what it becomes."""

from collections.abc import Iterator

from lockstep_config.strimzi.fields import Fields, Use
from lockstep_config.strimzi.schema import KINDS


def test_strimzi_page_has_the_use_of_every_field() -> None:
    def silent(fields: Fields, path: str) -> Iterator[str]:
        for name, field in fields.items():
            said = field.becomes if field.use is Use.USED else field.reason or field.use is Use.CHART
            if not said:
                yield f"{path}.{name}"
            if field.use is Use.USED:
                yield from silent(field.fields, f"{path}.{name}")

    assert [path for kind, fields in KINDS.items() for path in silent(fields, kind)] == []
