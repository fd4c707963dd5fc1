"""Every table goes through `lockstep_cli.rendering.console`, so none has broken words or trailing blanks in a pipe."""

import ast

from tests.support.source_modules import source_modules

MAKERS = {
    "lockstep_cli.rendering.console": "it is the one place",
    "lockstep_cli.rendering.progress_display": "a line that moves, on a terminal alone",
    "lockstep_console.process": "its console is a page in a browser, and none of rich",
}
"""Modules that may make a console of rich."""
CONSOLES = ("Console", "WholeLineConsole")


def makers() -> set[str]:
    """Return the modules that make a console, or print by rich without one."""
    return {module for module, tree in source_modules() for node in ast.walk(tree) if prints(node)}


def prints(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CONSOLES:
            return True
        case ast.ImportFrom(module="rich", names=names):
            return any(name.name in ("print", "print_json", "get_console") for name in names)
    return False


def test_consoles_are_made_in_one_place() -> None:
    assert makers() == MAKERS.keys()


def test_console_of_another_module_is_found() -> None:
    assert prints(ast.parse("Console(file=stream)").body[0].value)  # type: ignore[attr-defined]  # an expression
    assert prints(ast.parse("from rich import print").body[0])
