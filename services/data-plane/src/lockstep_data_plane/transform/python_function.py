"""A function of the user from Arrow table to Arrow table: how it is found, which version it has, and how it fails.

It runs in a process of its own (`python_child.py`). What is said of a failure has nothing of a record in it: the class
of an error and the line of the function's own code, and never the error's message.
"""

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from lockstep_state.errors import NeedsDecision

FORM = 1
"""The form in which columns are made and read back. Another one is another version of each function."""


class FunctionRefused(NeedsDecision):
    """The error of a function that cannot be used, or of a table that it must not return. `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class FunctionFailed(NeedsDecision):
    """The error of a function that has raised one."""

    def __init__(self, condition: str, fragment: str) -> None:
        super().__init__(condition, fragment)
        self.condition = condition
        """The class of what it raised."""
        self.fragment = fragment
        """The function, and the file and line of it."""


@dataclass(frozen=True, slots=True)
class FunctionVersion:
    """The version of a function, with what it covers."""

    digest: str
    """The SHA-256 of the fields below, the function's name and the content of its files."""
    package: str
    """The distribution that has the function, and its version; "": it belongs to none."""
    files: int
    """The number of the files of its package: all of them but compiled ones that Python makes itself."""
    python: str
    pyarrow: str

    def __str__(self) -> str:
        package = self.package or "no package"
        return f"{self.digest[:12]} ({self.files} files, {package}, {self.python}, pyarrow {self.pyarrow})"

    @classmethod
    def of(cls, name: str, module: ModuleType, pyarrow: str) -> Self:
        """Return the version of the function with this name, `package.module:function`, of a module."""
        root = source_root(module)
        files = [[path.relative_to(root).as_posix(), _digest(path)] for path in source_files(root, module)]
        package = _distribution_of(module)
        python = f"{platform.python_implementation()} {platform.python_version()}"
        parts = [FORM, name, files, package, python, pyarrow]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return cls(digest, package, len(files), python, pyarrow)


def source_root(module: ModuleType) -> Path:
    """Return the folder of the topmost package that a module is in; for a module in none, the folder it lies in.

    A namespace package is no package here, because several distributions may share one.
    """
    if not getattr(module, "__file__", None):
        raise FunctionRefused("FUNCTION_WITHOUT_FILE", f"the module {module.__name__} has no file")
    parts = module.__name__.split(".")
    for length in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:length]))
        if package is not None and hasattr(package, "__path__") and getattr(package, "__file__", None):
            return Path(str(package.__file__)).resolve().parent
    return Path(str(module.__file__)).resolve().parent


def source_files(root: Path, module: ModuleType) -> Iterator[Path]:
    """Yield the files that the version covers, in an order that is the same everywhere."""
    file = Path(str(module.__file__)).resolve()
    if not (root / "__init__.py").exists():
        yield file
        return
    for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _distribution_of(module: ModuleType) -> str:
    """Return the distribution that has a module, with its version; "": none has it."""
    top = module.__name__.partition(".")[0]
    names = sorted(set(importlib.metadata.packages_distributions().get(top, ())))
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function from Arrow table to Arrow table."""

    name: str
    """`package.module:function`."""
    module: ModuleType
    call: Callable[..., Any]
    secrets: Mapping[str, str] | None
    """The second argument; None: the function has one parameter only."""

    @classmethod
    def load(cls, name: str, secrets: Mapping[str, str]) -> Self:
        """Return the function with this name. Raises FunctionRefused."""
        module_name, _, function_name = name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except Exception as exc:  # whatever a module of others does when it is imported
            raise FunctionRefused(
                "FUNCTION_NOT_IMPORTED", f"{module_name} cannot be imported ({type(exc).__name__}: {exc})"
            ) from exc
        called: Any = module
        for part in function_name.split("."):
            called = getattr(called, part, None)
        if not callable(called) or inspect.iscoroutinefunction(called) or inspect.isgeneratorfunction(called):
            raise FunctionRefused("FUNCTION_MISSING", f"{module_name} has no function {function_name}")
        return cls(name, module, called, secrets if _takes_secrets(name, called) else None)

    def __call__(self, table: Any) -> Any:
        """Return what the function makes of a table.

        Raises:
            FunctionFailed: It raised an error.
            MemoryError: There is too little memory, which says nothing about the records.
        """
        try:
            return self.call(table) if self.secrets is None else self.call(table, self.secrets)
        except MemoryError:
            raise
        except (Exception, SystemExit) as exc:  # noqa: BLE001  # whatever it is, it is the failure of a record
            raise FunctionFailed(type(exc).__qualname__, self._place(exc.__traceback__)) from None

    def _place(self, traceback: TracebackType | None) -> str:
        """Return the function's name, with the last line of its own package that an error came through."""
        root, line_text = source_root(self.module), ""
        while traceback is not None:
            file = Path(traceback.tb_frame.f_code.co_filename)
            if root == file.resolve().parent or root in file.resolve().parents:
                line_text = f" ({file.name}, line {traceback.tb_lineno})"
            traceback = traceback.tb_next
        return self.name + line_text


def _takes_secrets(name: str, called: Callable[..., Any]) -> bool:
    """Return whether the function has a second parameter. Raises FunctionRefused if it takes neither one nor two."""
    signature = inspect.signature(called)
    for count in (2, 1):
        try:
            signature.bind(*(None,) * count)
        except TypeError:
            continue
        return count == 2
    raise FunctionRefused(
        "FUNCTION_PARAMETERS", f"{name} has to take a table, or a table and the secrets, and takes {signature}"
    )
