"""Writes the libraries of the console's front end anew: `python -m tools.console.vendor`.

`tools/console/package.json` pins their versions and `package-lock.json` the hashes of their archives. npm fetches them,
and one module of each is copied. A bare import (`from "preact"`) becomes the path of the copy beside it, because a page
with `default-src 'self'` has no import map. Nothing else is changed. `vendor.json` says what is there. The `.d.ts`
beside a module leads tsc to the types of its package.
"""

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STATIC = ROOT / "services/console/src/lockstep_console/static"
VENDOR = STATIC / "vendor"
MANIFEST = VENDOR / "vendor.json"


@dataclass(frozen=True, slots=True)
class VendoredFile:
    """A file of a package of npm, and its name in `vendor/`.

    `types` is the text of the declarations beside a module. tsc reads those of the package by it.
    """

    package: str
    source: str
    name: str
    types: str = ""


FILES = (
    VendoredFile("preact", "dist/preact.mjs", "preact.js", 'export * from "preact";'),
    VendoredFile("preact", "hooks/dist/hooks.mjs", "preact-hooks.js", 'export * from "preact/hooks";'),
    VendoredFile(
        "@preact/signals-core",
        "dist/signals-core.module.js",
        "signals-core.js",
        'export * from "@preact/signals-core";',
    ),
    VendoredFile("@preact/signals", "dist/signals.module.js", "signals.js", 'export * from "@preact/signals";'),
    VendoredFile("htm", "dist/htm.module.js", "htm.js", 'export { default } from "htm";'),
    VendoredFile("uplot", "dist/uPlot.esm.js", "uplot.js", 'export { default } from "uplot";'),
    VendoredFile("uplot", "dist/uPlot.min.css", "uplot.css"),
)

IMPORTS = {
    "preact": "./preact.js",
    "preact/hooks": "./preact-hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
"""The bare imports of these files, and what is imported instead."""

_SPECIFIER = re.compile(r"""(\bfrom\s*|\bimport\s*\(?\s*)(["'])([@\w./-]+)\2""")
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S+\s*$")


def rewrite_imports(text: str) -> str:
    """Return a module with paths for its bare imports, and without the address of a source map that is not here.

    Raises:
        ValueError: It imports something that is not vendored.
    """

    def path_of(match: re.Match[str]) -> str:
        specifier = match[3]
        if specifier.startswith("."):
            return match[0]
        if specifier not in IMPORTS:
            raise ValueError(f"nothing is vendored for the import {specifier!r}")
        return f"{match[1]}{match[2]}{IMPORTS[specifier]}{match[2]}"

    return _SOURCE_MAP.sub("", _SPECIFIER.sub(path_of, text)).rstrip("\n") + "\n"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_vendored(modules: Path) -> dict[str, Any]:
    """Copy the files and licences of the packages in `modules`, and return the manifest."""
    VENDOR.mkdir(exist_ok=True)
    entries = []
    for file in FILES:
        folder = modules / file.package
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        text = (folder / file.source).read_text(encoding="utf-8")
        path = VENDOR / file.name
        path.write_text(rewrite_imports(text) if path.suffix == ".js" else text.rstrip("\n") + "\n", encoding="utf-8")
        if file.types:
            path.with_suffix(".d.ts").write_text(file.types + "\n", encoding="utf-8")
        licence = VENDOR / f"{file.package.replace('@', '').replace('/', '-')}-LICENSE.txt"
        licence.write_text(_licence_text(folder).rstrip("\n") + "\n", encoding="utf-8")
        entries.append(
            {
                "file": file.name,
                "package": file.package,
                "version": package["version"],
                "source": file.source,
                "sha256": sha256(path),
                "licence": package["license"],
                "licence_file": licence.name,
            }
        )
    return {"written_by": "python -m tools.console.vendor", "files": entries}


def _licence_text(folder: Path) -> str:
    path = next(path for path in sorted(folder.iterdir()) if path.stem.upper() in ("LICENSE", "LICENCE"))
    return path.read_text(encoding="utf-8")


def main() -> None:
    """Fetch what the lock file names, and write the folder `vendor/`."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("vendor: npm is needed to fetch the libraries, and there is none on PATH")
    subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=HERE, check=True)
    manifest = write_vendored(HERE / "node_modules")
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for entry in manifest["files"]:
        print(f"{entry['file']:<18} {entry['package']} {entry['version']} ({entry['licence']})")  # noqa: T201 - what it has written


if __name__ == "__main__":
    main()
