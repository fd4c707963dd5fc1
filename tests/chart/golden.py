"""What the seeds' resources become, kept as text: `python -m tests.chart.golden` writes it anew, to be read as a diff.

An outline of every seed, with each object and what its pods mount; and, of four that have little in common, all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.chart.helm import GOLDEN, SEEDS, Objects, rendered

OUTLINES = GOLDEN / "outlines.txt"
WHOLE = tuple(
    seed
    for seed in SEEDS
    if seed.stem in ("streams-9.9-whole", "streams-9.9.7-mtls", "strimzi-0.18-mirror-maker", "strimzi-0.17-minimal")
)


def golden(seed: Path) -> Path:
    return GOLDEN / f"{seed.stem}.yaml"


def whole(seed: Path) -> str:
    """Return everything that Helm renders of a seed."""
    return rendered(seed).text


def outlines() -> str:
    """Return the objects of each seed, a line each."""
    return "\n".join(line for seed in SEEDS for line in ("", seed.stem, *_lines(rendered(seed))))[1:] + "\n"


def _lines(objects: Objects) -> Iterator[str]:
    for manifest in objects.all:
        yield f"  {manifest['kind']} {manifest['metadata']['name']}{_more(manifest)}"


def _more(manifest: dict[str, Any]) -> str:
    if "replicas" not in manifest.get("spec", {}):
        return ""
    spec = manifest["spec"]["template"]["spec"]
    flow = manifest["metadata"]["annotations"]["lockstep/flow"]
    mounts = [path for mount in spec["containers"][0]["volumeMounts"] if (path := mount["mountPath"]) != "/tmp"]
    beside = [path.removeprefix("/etc/lockstep/") for path in mounts if not path.endswith((".yaml", ".properties"))]
    inits = [container["name"] for container in spec.get("initContainers", [])]
    return f" x{manifest['spec']['replicas']} of {flow}{_listed(' with ', beside)}{_listed(' after ', inits)}"


def _listed(before: str, names: list[str]) -> str:
    return before + ", ".join(names) if names else ""


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    OUTLINES.write_text(outlines(), encoding="utf-8")
    for one in WHOLE:
        golden(one).write_text(whole(one), encoding="utf-8")
