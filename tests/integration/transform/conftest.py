"""One Spark for all tests of transforms; they need no broker."""

from collections.abc import Iterator

import pytest

from tests.support.transform_jvm import TransformJvm, running


@pytest.fixture(scope="session")
def jvm() -> Iterator[TransformJvm]:
    with running() as spark:
        yield spark
