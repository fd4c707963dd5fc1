"""The examples in the docstrings of the client library that need no cluster."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import lockstep_client


def test_examples_in_docstrings_run() -> None:
    modules = [
        lockstep_client,
        *(import_module(f"lockstep_client.{m.name}") for m in iter_modules(lockstep_client.__path__)),
    ]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.attempted for result in results) > 0, "nothing found: this test has lost its subject"
    assert sum(result.failed for result in results) == 0
