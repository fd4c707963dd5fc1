"""The OpenAPI document of the console, generated from its routes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep_console.api.schemas import TEXT, object_of
from lockstep_console.route import API, Answer, ConsoleRequest, Parameter, Route

PATH = f"{API}/openapi.json"

PROBLEM = object_of(error=object_of(code=TEXT, sentence=TEXT))

MEANINGS = {
    200: "The answer",
    202: "It is carried out in the background",
    204: "Done",
}

OTHER_TYPES = {".md": "text/markdown", "/plan": "text/event-stream", "/changes": "text/event-stream"}
"""Content types beside JSON, by the end of the path."""


def build_document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Return the document (OpenAPI 3.1) of these routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lockstep's console",
            "version": version,
            "description": "Times are Unix milliseconds. Null is unknown. Ignore fields that are not here.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def with_document(routes: Sequence[Route], version: str) -> tuple[Route, ...]:
    """Return the routes and the one that answers with the document of all of them."""

    async def _show_document(request: ConsoleRequest) -> Answer:
        """Answer with this document."""
        return request.json_answer(document)

    route = Route("GET", PATH, _show_document, "This document", answers={200: {"type": "object"}})
    document = build_document((*routes, route), version)
    return (*routes, route)


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)", route.path)
    ]
    answers = route.answers or {200: {}}
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [*parameters, *map(_parameter, route.query)],
        "responses": {
            **{str(status): _response(route, status, schema) for status, schema in answers.items()},
            "default": {
                "description": "It is not carried out",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
        "security": [{}] if route.is_open else [{}, {"token": []}] if not route.acts else [{"token": []}],
    }
    if route.acts and not route.for_programs:
        operation["parameters"].append(
            {"name": "X-Lockstep-Request", "in": "header", "required": True, "schema": {"const": "1"}}
        )
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": dict(route.body)}}}
    return operation


def _operation_id(route: Route) -> str:
    """Return a name of its own, such as `get_flows_flow_lag`."""
    words = re.findall(r"\w+", route.path.removeprefix(API))
    return "_".join((route.method.lower(), *words))


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind}
    for name, value in (
        ("default", parameter.default),
        ("minimum", parameter.least),
        ("maximum", parameter.most),
        ("enum", list(parameter.choices) or None),
    ):
        if value is not None:
            schema[name] = value
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": schema}


def _response(route: Route, status: int, schema: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": dict(schema)}}
    for end, content_type in OTHER_TYPES.items():
        if route.path.endswith(end):
            text = {content_type: {"schema": {"type": "string"}}}
            content = text if end != "/plan" else {**content, **text}
    return {"description": MEANINGS.get(status, "The answer"), "content": content}
