"""The front end of the console: small, with the libraries that it names, sound modules, and nothing of another host."""

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_modules import REPOSITORY
from tools.console.vendor import FILES, HERE, MANIFEST, STATIC, VENDOR, rewrite_imports, sha256

MOST_BYTES = 250_000
"""Bytes of all files together under gzip."""

SERVED = sorted(path for path in STATIC.rglob("*") if path.is_file() and not path.name.endswith(".d.ts"))
OWN = [path for path in SERVED if VENDOR not in path.parents]
OWN_MODULES = [path for path in OWN if path.suffix == ".js"]
LIBRARIES = json.loads(MANIFEST.read_text())["files"]
PACKAGES = json.loads((HERE / "package.json").read_text())["devDependencies"]

STATIC_IMPORT = re.compile(
    r"""(?:^|;)(?:import\s*|(?:import|export)\b[^"';]*?\bfrom\s*)["']([^"']+)["'];""", re.MULTILINE
)
ANY_IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["']([@\w./-]+)["']""")
NEVER = {
    "innerHTML": r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write",
    "code made of text": r"\beval\(|new Function\(|set(?:Timeout|Interval)\(\s*[\"'`]",
    "a style in markup": r"<[^>]*\bstyle\s*=",
    "another host": r"https?://(?!www\.w3\.org/2000/svg)",
    "an event handler in markup": r"\bon[a-z]+=[\"']",
}


def name_of(path: Path) -> str:
    return path.relative_to(STATIC).as_posix()


def imports_of(path: Path, pattern: re.Pattern[str] = STATIC_IMPORT) -> Iterator[Path]:
    for specifier in pattern.findall(path.read_text(encoding="utf-8")):
        assert specifier.startswith("."), f"{name_of(path)} imports {specifier}, and a page has no import map"
        yield (path.parent / specifier).resolve()


def test_files_are_at_most_250_kb_under_gzip() -> None:
    size = sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in SERVED)
    assert size <= MOST_BYTES, f"{size:,} bytes"


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_library_is_the_one_that_is_named(library: dict[str, str]) -> None:
    path = VENDOR / library["file"]
    assert sha256(path) == library["sha256"], "python -m tools.console.vendor writes the libraries anew"
    assert library["version"] == PACKAGES[library["package"]]
    assert library["licence"] in ("MIT", "Apache-2.0")
    assert len((VENDOR / library["licence_file"]).read_text()) > 500


def test_each_vendored_file_is_named() -> None:
    named = {library["file"] for library in LIBRARIES} | {library["licence_file"] for library in LIBRARIES}
    assert {path.name for path in SERVED if VENDOR in path.parents} == named | {MANIFEST.name}
    assert {file.name for file in FILES} == {library["file"] for library in LIBRARIES}


def test_lock_of_packages_names_no_registry() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    assert lock["packages"][""]["devDependencies"] == PACKAGES
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)


@pytest.mark.parametrize("path", SERVED, ids=name_of)
def test_module_imports_only_files_that_are_there(path: Path) -> None:
    if path.suffix == ".js":
        missing = [target for target in imports_of(path, ANY_IMPORT) if target not in SERVED]
        assert not missing


def test_first_page_loads_every_module_of_the_first_screen_at_once() -> None:
    needed: set[Path] = set()
    waiting = [STATIC / "app.js"]
    while waiting:
        for target in imports_of(waiting.pop()):
            if target not in needed:
                needed.add(target)
                waiting.append(target)
    page = (STATIC / "index.html").read_text()
    preloaded = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)
    assert sorted(preloaded) == sorted(map(name_of, needed))


def test_first_page_has_no_script_and_no_style_of_its_own() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script\b[^>]*>(.*?)</script>", page, re.DOTALL) == [""]
    assert "<style" not in page


@pytest.mark.parametrize("never", NEVER)
@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_own_file_has_nothing_that_a_policy_forbids(path: Path, never: str) -> None:
    assert not re.findall(NEVER[never], path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", {path.parent for path in OWN_MODULES}, ids=name_of)
def test_folder_has_at_most_20_modules(folder: Path) -> None:
    assert len([path for path in OWN_MODULES if path.parent == folder]) <= 20


def test_bare_imports_become_paths() -> None:
    module = 'import{h as e}from"preact";export*from "@preact/signals-core";var t=1;\n//# sourceMappingURL=x.js.map\n'
    assert rewrite_imports(module) == 'import{h as e}from"./preact.js";export*from "./signals-core.js";var t=1;\n'
    assert rewrite_imports('import a from "./b.js";') == 'import a from "./b.js";\n'
    with pytest.raises(ValueError, match="left-pad"):
        rewrite_imports('import pad from "left-pad";')


def test_pure_modules_do_what_their_tests_say() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node, which runs the tests of the front end's pure modules")
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.test.mjs"))
    assert tests
    done = subprocess.run(
        [node, "--experimental-default-type=module", "--test", *tests],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
