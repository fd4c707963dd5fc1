"""The files in `deploy` that people start from, and how the images in them read their environment."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.source_modules import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
COMPOSE = DEPLOY / "compose"
KIND = DEPLOY / "kind"
EXAMPLES = DEPLOY / "examples"

_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


def documents(file: Path) -> list[Any]:
    """Each document of a YAML file."""
    return [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document is not None]


def compose_services() -> dict[str, dict[str, Any]]:
    """Return the services of compose.yaml as Compose sees them without variables of its user."""
    text = _VARIABLE.sub(r"\1", (COMPOSE / "compose.yaml").read_text(encoding="utf-8"))
    services: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return services


def kind_brokers() -> dict[str, dict[str, str]]:
    """Return the environment of each broker of the quick start on kind, by the name of its Deployment."""
    environments = {}
    for document in documents(KIND / "brokers.yaml"):
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            environments[document["metadata"]["name"]] = {pair["name"]: pair["value"] for pair in container["env"]}
    return environments


def broker_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what Kafka's own image makes of its variables: `KAFKA_A_B` is `a.b`."""
    return {
        name.removeprefix("KAFKA_")
        .lower()
        .replace("___", "-")
        .replace("__", "\0")
        .replace("_", ".")
        .replace("\0", "_"): text
        for name, text in environment.items()
        if name.startswith("KAFKA_")
    }


def listeners(text: str) -> dict[str, tuple[str, int]]:
    """Return host and port of each listener, by its name."""
    pairs = (part.partition("://") for part in text.split(","))
    return {name: (address.rpartition(":")[0], int(address.rpartition(":")[2])) for name, _, address in pairs}
