"""The tables of `console-api.md`, from the routes of the console."""

from collections.abc import Iterable, Mapping
from functools import partial

from lockstep_console.pages import ROUTES
from lockstep_console.route import API, Parameter, Route
from tools.docs.pages import DOCS, code, table

PAGE = DOCS / "reference" / "console-api.md"


def blocks() -> Mapping[str, str]:
    """Return the tables of what reads and of what acts. Kafka Connect's paths have a page of their own."""
    own = [route for route in ROUTES if not route.for_programs]
    return {
        "requests that read": _table(route for route in own if not route.acts),
        "requests that act": _acting(route for route in own if route.acts),
    }


def _table(routes: Iterable[Route]) -> str:
    rows = ((f"`{_path(route)}`", _sentence(route), "; ".join(map(_parameter, route.query))) for route in routes)
    return table("`GET` | gives | query", rows)


def _acting(routes: Iterable[Route]) -> str:
    rows = ((f"`{_path(route)}`", _sentence(route), _fields(route)) for route in routes)
    return table("`POST` | does | fields of the body", rows)


def _path(route: Route) -> str:
    return route.path.removeprefix(API)


def _sentence(route: Route) -> str:
    return route.summary.removesuffix(".")


def _parameter(parameter: Parameter) -> str:
    values = f": {code(filter(None, parameter.choices))}" if parameter.choices else ""
    default = "" if parameter.default in (None, "", 0) else f", by default `{parameter.default}`"
    return f"`{parameter.name}`{values}{default}"


def _fields(route: Route) -> str:
    properties = (route.body or {}).get("properties", {})
    needed = (route.body or {}).get("required", ())
    return "; ".join(map(partial(_field, needed=needed), properties.items()))


def _field(item: tuple[str, Mapping[str, object]], needed: Iterable[str]) -> str:
    name, schema = item
    choices = schema.get("enum")
    values = f": {code(filter(None, map(str, choices)))}" if isinstance(choices, list) else ""
    return f"`{name}`{' (needed)' if name in needed else ''}{values}"
