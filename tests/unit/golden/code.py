"""What the code says in literals, wherever it lies: calls by the name of what is called, and texts of a form. It knows
folders only, neither modules nor classes, so that moving and renaming these changes nothing here."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tests.support.source_modules import source_modules


@dataclass(frozen=True, slots=True)
class Called:
    """One call. `owner`: what stands before the dot. `args`: each argument by its possible texts, `{}` for what varies;
    none where it is no text; so are `keywords`, by name. `keys`: of the dicts among the arguments, as far as they are
    written out in the module."""

    part: str
    """The service or shared package in which it stands, such as `data-plane`."""
    owner: str
    args: tuple[tuple[str, ...], ...]
    keywords: Mapping[str, tuple[str, ...]]
    keys: tuple[str, ...]


class _Module:
    """One file, walked once."""

    def __init__(self, part: str, tree: ast.Module) -> None:
        self.part = part
        self.constants = dict(_assigned(tree.body))
        self.calls: list[ast.Call] = []
        self.functions: list[ast.FunctionDef] = []
        self.texts: list[str] = []
        self._named: dict[str, list[ast.expr]] = {}
        self._returned: dict[str, list[ast.expr]] = {}
        found: list[ast.Constant] = []
        passed_over: set[int] = set()
        for node in ast.walk(tree):
            passed_over.update(id(one) for one in _no_texts(node))
            if isinstance(node, ast.Call):
                self.calls.append(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node)
            elif isinstance(node, ast.FunctionDef):
                self.functions.append(node)
                returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
                self._returned.setdefault(node.name, []).extend(returned)
            else:
                for name, value in _assigned([node]):
                    self._named.setdefault(name, []).append(value)
        self.texts = [str(one.value) for one in found if id(one) not in passed_over]

    def keys(self, node: ast.expr) -> Iterator[str]:
        """Of a dict that is written out: at once, under a name, or as what a function of the module returns."""
        values = [node]
        if isinstance(node, ast.Name | ast.Attribute):
            values = self._named.get(node.id if isinstance(node, ast.Name) else node.attr, [])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            values = self._returned.get(node.func.id, [])
        for value in values:
            for one in _dicts(value):
                yield from (text for key in one.keys if key is not None for text in _texts(key, {}))


def _dicts(node: ast.expr) -> Iterator[ast.Dict]:
    if isinstance(node, ast.Dict):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from (*_dicts(node.body), *_dicts(node.orelse))


@cache
def _modules() -> tuple[_Module, ...]:
    parts = ((name.split(".")[0].removeprefix("lockstep_").replace("_", "-"), tree) for name, tree in source_modules())
    return tuple(_Module(part, tree) for part, tree in parts)


@cache
def _constants(part: str) -> Mapping[str, ast.expr]:
    """What names stand for in one of the modules of a part, for those that import them."""
    return {name: value for one in _modules() if one.part == part for name, value in one.constants.items()}


def calls(*names: str) -> Iterator[Called]:
    """Every call of something with one of these names."""
    for module in _modules():
        known = {**_constants(module.part), **module.constants}
        yield from (_called(module, node, known) for node in module.calls if _name(node) in names)


def keys_in(*functions: str) -> Iterator[tuple[str, str]]:
    """(part, key) of every dict that is written out in a function or method of these names, and of what is put in."""
    for module in _modules():
        for function in module.functions:
            for node in ast.walk(function) if function.name in functions else ():
                keys: list[ast.expr | None] = node.keys if isinstance(node, ast.Dict) else []
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    keys = [node.slice]
                yield from ((module.part, text) for key in keys if key is not None for text in _texts(key, {}))


def texts_like(form: str) -> set[str]:
    """Every text in code that is of the form, a regular expression. Docstrings are mostly none, `__all__`, annotations
    and the names of types neither."""
    pattern = re.compile(form)
    return {text for module in _modules() for text in module.texts if pattern.fullmatch(text)}


def _no_texts(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
        yield from ast.walk(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("NewType", "TypeVar"):
        yield from node.args
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if annotation is not None:  # quoted where it names what is defined later
            yield from ast.walk(annotation)


def _assigned(statements: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What gets which value: a name, or an attribute of whatever."""
    for node in statements:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name | ast.Attribute):
                    yield target.id if isinstance(target, ast.Name) else target.attr, node.value


def _name(node: ast.Call) -> str:
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _called(module: _Module, node: ast.Call, known: Mapping[str, ast.expr]) -> Called:
    values = (*node.args, *(keyword.value for keyword in node.keywords))
    return Called(
        module.part,
        ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else "",
        tuple(_texts(arg, known) for arg in node.args),
        {keyword.arg: _texts(keyword.value, known) for keyword in node.keywords if keyword.arg is not None},
        tuple(key for value in values for key in module.keys(value)),
    )


def _texts(node: ast.expr, known: Mapping[str, ast.expr]) -> tuple[str, ...]:
    """The texts that an expression may be."""
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, str) else ()
    if isinstance(node, ast.JoinedStr):
        return ("".join(_piece(part, known) for part in node.values),)
    if isinstance(node, ast.IfExp):
        return _texts(node.body, known) + _texts(node.orelse, known)
    if isinstance(node, ast.Name) and node.id in known:
        return _texts(known[node.id], {})
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        table = known.get(node.value.id)
        values = table.values if isinstance(table, ast.Dict) else []
        return tuple(text for value in values for text in _texts(value, {}))
    return ()


def _piece(part: ast.expr, known: Mapping[str, ast.expr]) -> str:
    if isinstance(part, ast.FormattedValue):
        texts = _texts(part.value, known)
        return texts[0] if len(texts) == 1 else "{}"
    return "".join(_texts(part, known))
