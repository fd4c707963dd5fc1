"""`compileall` for the images, without docstrings and without annotations of functions.

Its arguments are those of `python -m compileall`.
A process holds what its modules hold. Without docstrings, and without the columns that `-X no_debug_ranges` leaves out,
a control service takes 3 MiB less, and without annotations of functions 1 MiB. `python -OO` would leave the assertions
out too: they stay here. Annotations in classes stay, because `dataclass` and the like read them.
"""

import ast
import compileall
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)


def remove_docstrings(tree: ast.Module) -> ast.Module:
    """Take the docstring out of each module, class and function. Lines keep their numbers."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            if isinstance(node, ast.ClassDef):  # without any, `dataclass` writes one when the module is imported
                node.body[0] = ast.copy_location(ast.Expr(ast.copy_location(ast.Constant(" "), node)), node)
                continue
            del node.body[0]
            if not node.body and not isinstance(node, ast.Module):
                node.body = [ast.copy_location(ast.Pass(), node)]
    return tree


def remove_annotations(tree: ast.Module) -> ast.Module:
    """Take the annotations of parameters and results out of each function."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


def source_to_code(_loader: SourceFileLoader, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:
    """Compile a module for `py_compile`, which calls this of its loader.

    Raises:
        SyntaxError: The file is of another version of Python.
    """
    tree = remove_annotations(remove_docstrings(ast.parse(data, path)))
    code = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
    assert isinstance(code, CodeType)
    return code


# Here, not below: each worker of `-j` imports this module.
SourceFileLoader.source_to_code = source_to_code

if __name__ == "__main__":
    sys.exit(not compileall.main())
