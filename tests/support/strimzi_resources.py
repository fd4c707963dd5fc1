"""Resources for tests: texts loaded with secrets that the test makes."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from lockstep_config import Configuration, ConfigurationError, load
from lockstep_config.strimzi.resource import read_resource
from lockstep_config.text.config_providers import SECRETS_VARIABLE
from tests.support.certificates import Authority


@cache
def certificate_and_key() -> tuple[str, str]:
    """Return PEM of a certificate that signs itself, and of its key."""
    own = Authority("test").own
    return own.certificate_pem, own.key_pem()


class Resources:
    """One file and a folder of secrets."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "resource.yaml"
        self.secrets = folder / "secrets"
        self.secrets.mkdir()

    def secret(self, name: str, **values: str) -> None:
        """Write a secret. `__` in a key is a dot."""
        folder = self.secrets / name
        folder.mkdir(exist_ok=True, parents=True)
        for key, value in values.items():
            (folder / key.replace("__", ".")).write_text(value)

    @property
    def environment(self) -> Mapping[str, str]:
        return {SECRETS_VARIABLE: str(self.secrets)}

    def load(self, text: str) -> Configuration:
        self.file.write_text(text, encoding="utf-8")
        return load(self.file, self.environment)

    def entries(self, text: str) -> dict[str, str]:
        """Return the lines that a text becomes, references as they stand; it must have no mistake of its own."""
        read = read_resource(text.encode(), self.file)
        assert read.problems == ()
        return {entry.key: entry.value for entry in read.entries}

    def remarks(self, text: str) -> list[str]:
        """Return what is noted or without effect, each as `LINE PATH: MESSAGE`."""
        loaded = self.load(text)
        return [f"{remark.line} {remark.key}: {remark.message}" for remark in (*loaded.notes, *loaded.unused)]

    def remarked(self, text: str) -> str:
        """The remarks as one text."""
        return "\n".join(self.remarks(text))

    def mistakes(self, text: str | bytes) -> list[str]:
        """Return the problems of a text that must not load, each as `LINE PATH: MESSAGE`."""
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        with pytest.raises(ConfigurationError) as raised:
            load(self.file, self.environment)
        return [f"{problem.line} {problem.key}: {problem.message}" for problem in raised.value.problems]
