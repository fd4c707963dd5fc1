"""The tables of `console-api.md`, from the routes of the console."""

from collections.abc import Iterable, Mapping

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
    default = "" if parameter.default in (None, "", 0) else f", by default `{parameter.default}`"
    return f"`{parameter.name}`{_values(parameter.choices)}{default}"


def _fields(route: Route) -> str:
    properties = (route.body or {}).get("properties", {})
    needed = (route.body or {}).get("required", ())
    return "; ".join(
        f"`{name}`{' (needed)' if name in needed else ''}{_values(map(str, schema.get('enum', ())))}"
        for name, schema in properties.items()
    )


def _values(choices: Iterable[str]) -> str:
    """Return the values that a parameter or a field takes, behind its name; "" if it takes any."""
    named = list(filter(None, choices))
    return f": {code(named)}" if named else ""
