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
    return [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one is not None]


def compose_services() -> dict[str, dict[str, Any]]:
    """The services of compose.yaml as Compose sees them without variables of its user."""
    text = _VARIABLE.sub(r"\1", (COMPOSE / "compose.yaml").read_text(encoding="utf-8"))
    services: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return services


def kind_brokers() -> dict[str, dict[str, str]]:
    """The environment of each broker of the quick start on kind, by the name of its Deployment."""
    found = {}
    for one in documents(KIND / "brokers.yaml"):
        if one["kind"] == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            found[one["metadata"]["name"]] = {pair["name"]: pair["value"] for pair in container["env"]}
    return found


def broker_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What Kafka's own image makes of its variables: `KAFKA_A_B` is `a.b`."""
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
    """Host and port of each listener, by its name."""
    pairs = (one.partition("://") for one in text.split(","))
    return {name: (address.rpartition(":")[0], int(address.rpartition(":")[2])) for name, _, address in pairs}
