"""Kubernetes swagger.json and CRD files -> standalone strict JSON schemas.

usage: schemas.py SWAGGER OUTDIR [CRD.yaml...]
"""

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import yaml

PREFIX = "#/definitions/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
STRING_OR_INT = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
STRING_OR_NUMBER = {"oneOf": [{"type": "string"}, {"type": "number"}]}


def convert(node: Any) -> Any:
    """One schema node, with unknown fields refused and optional fields nullable."""
    if isinstance(node, list):
        return [convert(n) for n in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == "int-or-string" or node.get("x-kubernetes-int-or-string"):
        return STRING_OR_INT
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            required = set(node.get("required", ()))
            out[key] = {p: nullable(convert(s), p in required) for p, s in value.items()}
        elif key in ("items", "additionalProperties", "allOf", "anyOf", "oneOf"):
            out[key] = convert(value)
        elif key not in ("description", "default") and not key.startswith("x-kubernetes-"):
            out[key] = value
    open_to_more = node.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in out and "additionalProperties" not in out and not open_to_more:
        out["additionalProperties"] = False
    return out


def nullable(schema: Any, required: bool) -> Any:
    if required or not isinstance(schema.get("type"), str):
        return schema
    out = dict(schema, type=[schema["type"], "null"])
    if "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out


def definition(name: str, schema: Any) -> Any:
    if name.endswith("api.resource.Quantity"):
        return STRING_OR_NUMBER
    if name.endswith("util.intstr.IntOrString"):
        return STRING_OR_INT
    if "JSONSchemaProps" in name or name.endswith(".JSON"):
        return {}  # the bodies of CRDs are recursive: anything goes
    return convert(schema)


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value[len(PREFIX) :]
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def write(out: pathlib.Path, definitions: dict[str, Any], group: str, version: str, kind: str, schema: Any) -> None:
    needed: dict[str, Any] = {}
    todo = [schema]
    while todo:
        for name in references(todo.pop()):
            if name not in needed:
                needed[name] = definitions[name]
                todo.append(definitions[name])
    properties = dict(schema.get("properties", {}))
    properties["kind"] = {"type": "string", "enum": [kind]}
    properties["apiVersion"] = {"type": "string", "enum": [f"{group}/{version}" if group else version]}
    document = dict(
        schema,
        properties=properties,
        required=sorted({*schema.get("required", ()), "kind", "apiVersion"}),
        definitions=needed,
    )
    document["$schema"] = "http://json-schema.org/draft-07/schema#"
    suffix = "-".join(["", *([group.split(".")[0]] if group else []), version])
    (out / f"{kind.lower()}{suffix}.json").write_text(json.dumps(document, separators=(",", ":")))


def main(swagger: str, outdir: str, *crd_files: str) -> None:
    out = pathlib.Path(outdir)
    out.mkdir(parents=True, exist_ok=True)
    source = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    definitions = {name: definition(name, schema) for name, schema in source.items()}
    count = 0
    for name, schema in source.items():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) == 1:  # DeleteOptions and the like belong to every group
            gvk = kinds[0]
            write(out, definitions, gvk["group"], gvk["version"], gvk["kind"], definitions[name])
            count += 1
    for file in crd_files:
        for crd in yaml.safe_load_all(pathlib.Path(file).read_text()):
            if not crd or crd.get("kind") != "CustomResourceDefinition":
                continue
            spec = crd["spec"]
            for version in spec["versions"]:
                schema = convert(version["schema"]["openAPIV3Schema"])
                schema.setdefault("properties", {})["metadata"] = {"$ref": PREFIX + META}
                write(out, definitions, spec["group"], version["name"], spec["names"]["kind"], schema)
                count += 1
    sys.stdout.write(f"{count} schemas in {out}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
