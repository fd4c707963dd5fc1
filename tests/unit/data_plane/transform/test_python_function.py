"""A function of the user: how it is found, what its version covers, and what is said when it fails."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lockstep_data_plane.transform.python_function import (
    FunctionFailed,
    FunctionRefused,
    FunctionVersion,
    TableFunction,
    source_files,
    source_root,
)

FUNCTIONS = "tests.support.table_functions"

Write = Callable[..., ModuleType]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files by name, and import a module of them anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def written(module: str, **files: str) -> ModuleType:
        for name, text in files.items():
            path = tmp_path / name.replace("__in__", "/").replace("__dot__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in set(sys.modules) - before:
            if name.split(".")[0] == module.split(".")[0]:
                del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module(module)

    yield written
    for name in set(sys.modules) - before:
        if (file := getattr(sys.modules[name], "__file__", None)) and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


def version_of(module: ModuleType, name: str = "acme.masking:mask", pyarrow: str = "1") -> str:
    return FunctionVersion.of(name, module, pyarrow).digest


PACKAGE = {"acme__in____init____dot__py": "", "acme__in__masking__dot__py": "from acme.names import NAMES"}


def test_the_version_covers_every_file_of_the_package(write: Write) -> None:
    module = write("acme.masking", **PACKAGE, acme__in__names__dot__py="NAMES = 1", acme__in__list__dot__csv="a")
    first = version_of(module)
    assert first == version_of(module)
    assert FunctionVersion.of("acme.masking:mask", module, "1").files == 4
    changed = [
        version_of(write("acme.masking", acme__in__names__dot__py="NAMES = 2")),
        version_of(write("acme.masking", acme__in__names__dot__py="NAMES = 1", acme__in__list__dot__csv="b")),
        version_of(write("acme.masking", acme__in__list__dot__csv="a", acme__in__more__in__new__dot__py="")),
        version_of(module, name="acme.masking:other"),
        version_of(module, pyarrow="2"),
    ]
    assert len({first, *changed}) == 6


def test_the_version_of_a_module_alone_covers_its_file_only(write: Write) -> None:
    module = write("masking", masking__dot__py="", beside__dot__py="a = 1")
    first = version_of(module)
    assert version_of(write("masking", beside__dot__py="a = 2")) == first
    assert version_of(write("masking", masking__dot__py="a = 2")) != first


def test_a_namespace_is_no_package(write: Write) -> None:
    module = write(
        "shared.acme.masking",
        **{f"shared__in__{name}": text for name, text in PACKAGE.items() if "init" in name},
        shared__in__acme__in__masking__dot__py="",
        shared__in__other__in__x__dot__py="",
    )
    assert source_root(module).name == "acme"
    assert {path.name for path in source_files(source_root(module), module)} == {"__init__.py", "masking.py"}


def test_what_python_compiles_itself_does_not_count(write: Write) -> None:
    module = write("acme.masking", **PACKAGE, acme__in__names__dot__py="NAMES = 1")
    first = version_of(module)
    (source_root(module) / "__pycache__").mkdir(exist_ok=True)
    (source_root(module) / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert version_of(module) == first


def test_the_version_names_its_distribution() -> None:
    assert FunctionVersion.of("pytest:x", pytest, "1").package.startswith("pytest ")


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("no_such_module:f", "FUNCTION_NOT_IMPORTED", "no_such_module cannot be imported (ModuleNotFoundError"),
        (f"{FUNCTIONS}:nothing", "FUNCTION_MISSING", "has no function nothing"),
        (f"{FUNCTIONS}:pa", "FUNCTION_MISSING", "has no function pa"),
        (f"{FUNCTIONS}:asynchronous", "FUNCTION_MISSING", "has no function asynchronous"),
        (f"{FUNCTIONS}:three", "FUNCTION_PARAMETERS", "has to take a table, or a table and the secrets"),
    ],
)
def test_what_is_no_function_is_refused(name: str, code: str, says: str) -> None:
    with pytest.raises(FunctionRefused) as refused:
        TableFunction.load(name, {})
    assert refused.value.code == code
    assert says in refused.value.message


def test_a_function_with_a_second_parameter_gets_the_secrets() -> None:
    assert TableFunction.load(f"{FUNCTIONS}:signed", {"salt": "x"}).secrets == {"salt": "x"}
    assert TableFunction.load(f"{FUNCTIONS}:unchanged", {"salt": "x"}).secrets is None


def test_a_failure_names_the_line_and_has_no_value(write: Write) -> None:
    text = "def f(table):\n    return g(table)\n\n\ndef g(table):\n    return int(table)\n"
    write("masking", masking__dot__py=text)
    function = TableFunction.load("masking:f", {})
    with pytest.raises(FunctionFailed) as failed:
        function("4111 1111")
    assert (failed.value.condition, failed.value.fragment) == ("ValueError", "masking:f (masking.py, line 6)")
    assert "4111" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_failure_elsewhere_names_the_line_that_called() -> None:
    function = TableFunction.load("json:loads", {})
    with pytest.raises(FunctionFailed) as failed:
        function("secret")
    assert failed.value.condition == "JSONDecodeError"
    assert failed.value.fragment.startswith("json:loads (decoder.py, line ")


def test_leaving_the_process_is_a_failure_and_a_lack_of_memory_is_none() -> None:
    with pytest.raises(FunctionFailed) as failed:
        TableFunction.load(f"{FUNCTIONS}:leaves", {})(None)
    assert failed.value.condition == "SystemExit"
    with pytest.raises(MemoryError):
        TableFunction.load(f"{FUNCTIONS}:has_no_memory", {})(None)
