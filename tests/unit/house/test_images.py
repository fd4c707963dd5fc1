"""What `make images` writes down for the builds: which packages go into which image, and how builders are called."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.source_modules import REPOSITORY
from tests.unit.house.ci_scripts import script

LOCK = (REPOSITORY / "requirements.lock").read_text()
REQUIREMENTS = script("requirements")
DOCKERFILE = (REPOSITORY / "deploy" / "images" / "Dockerfile").read_text()


@pytest.fixture
def images() -> ModuleType:
    return script("images")


def test_a_part_of_the_lock_has_the_hashes_and_nothing_else() -> None:
    part = REQUIREMENTS.part_of(LOCK, {"aiokafka", "six"})
    assert [line.split("==")[0] for line in part.splitlines() if "==" in line] == ["aiokafka", "six"]
    assert set(re.findall(r"sha256:\w+", part)) < set(re.findall(r"sha256:\w+", LOCK))
    assert part.count("--hash=sha256:") == part.count("sha256:") > 2


def test_a_part_with_a_package_that_is_not_locked_is_refused() -> None:
    with pytest.raises(KeyError, match="no-such-package"):
        REQUIREMENTS.part_of(LOCK, {"six", "no-such-package"})


def test_lists_of_packages_are_what_the_images_need() -> None:
    texts = REQUIREMENTS.texts_of_images()
    assert {file.name for file in REQUIREMENTS.OF_IMAGES.iterdir()} == {file.name for file in texts}
    assert {file.name for file, text in texts.items() if file.read_text() != text} == set(), "run make docs"


def test_the_dockerfile_copies_only_what_git_tracks() -> None:
    """`docker build` alone works on a clean checkout: what it copies and mounts is there, and not left out."""
    sources = {
        *(
            word
            for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
            for word in line.split()[:-1]
        ),
        *re.findall(r"--mount=type=bind,source=([^,]+),", DOCKERFILE),
    }
    listed = subprocess.run(
        ["git", "ls-files", "-c", "-o", "--exclude-standard", "--", *sources],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    files = listed.stdout.splitlines()
    assert {source for source in sources if not any(f"{file}/".startswith(f"{source}/") for file in files)} == set()
    admitted = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {source for source in sources if not any(f"{source}/".startswith(f"{path}/") for path in admitted)} == set()
    assert "deploy/images/wheels" in sources


def test_stages_and_steps_of_the_dockerfile_are_whole() -> None:
    """No builder is needed to see that a stage is there before it is used, and that each step is a program of sh."""
    stages = set[str]()
    lines = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", "").splitlines()
    for line in lines:
        used = re.findall(r"--from=(\S+)", line)
        if begun := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            used += [] if begun[1].startswith("${") else [begun[1]]
        assert set(used) <= stages, line
        if begun:
            stages.add(begun[2])
        if step := re.fullmatch(r"RUN (?:--mount=\S+ +)*(.+)", line):
            read = subprocess.run(["sh", "-n", "-c", step[1]], capture_output=True, text=True, check=False)
            assert (read.returncode, read.stderr) == (0, ""), line
    assert len(stages) > len(REQUIREMENTS.IMAGES)


def test_parts_that_the_dockerfile_installs_are_there() -> None:
    installed = set(re.findall(r"-r (\S+\.txt)", DOCKERFILE))
    assert installed == {f"{part}.txt" for part in REQUIREMENTS.PARTS}


def test_only_the_data_plane_has_spark_and_none_has_what_only_we_need() -> None:
    members = REQUIREMENTS.members()
    packages = {image: REQUIREMENTS.needed(image, members) for image in REQUIREMENTS.IMAGES}
    assert {image for image, needed in packages.items() if "pyspark" in needed} == {"data-plane"}
    assert all({"faust-streaming", "opentelemetry-sdk"} < needed for needed in packages.values())
    tools = {"pytest", "ruff", "mypy", "pip", "setuptools", "hatchling", "psutil"}
    found = {image: needed & tools for image, needed in packages.items() if needed & tools}
    assert found == {image: {"psutil"} for image in REQUIREMENTS.WITH_OPS}
    assert packages["console"] == packages["cli"], "they share a layer"
    assert len({frozenset(packages[image]) for image in REQUIREMENTS.CONTROL}) == 1, "they share a layer"
    assert all("opentelemetry-exporter-otlp-proto-http" in names for names in packages.values()), "who traces needs it"


def test_each_image_has_a_target_that_starts_its_command() -> None:
    targets = dict(re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE))
    named = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
    assert set(REQUIREMENTS.IMAGES) < named, targets
    services = {path.name for path in (REPOSITORY / "services").iterdir() if path.is_dir()}
    assert services | {"cli"} == set(REQUIREMENTS.IMAGES)


def test_java_package_of_the_image_is_in_every_debian() -> None:
    """Debian 12 has Java 17 alone, and Debian 13 has 21 and newer."""
    assert re.findall(r"[a-z0-9-]*(?:jre|jdk)[a-z0-9-]*", DOCKERFILE) == ["default-jre-headless"]


def test_packages_of_debian_are_installed_in_one_way() -> None:
    """The one that pins them."""
    assert "apt-get" not in DOCKERFILE
    assert DOCKERFILE.count("sh /install-packages") == 2


def test_offline_build_names_the_python_and_machine_of_its_wheels(
    images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(images.subprocess, "run", lambda command, **_: called.append(command))
    images.build("podman", ["cli"], images.Bases(), "x", "1", True)
    images.build("podman", ["cli"], images.Bases(), "x", "1", False)
    offline, online = ([word for word in command if word.startswith("WHEELS_FOR")] for command in called)
    assert offline == ["WHEELS_FOR=3.11 x86_64"]
    assert online == []
    (check,) = (step for step in re.split(r"\n(?=RUN|FROM|COPY)", DOCKERFILE) if "is for Python $WHEELS_FOR" in step)
    assert "exit 1" in check
    assert DOCKERFILE.index(check) < DOCKERFILE.index("--require-hashes -r build.txt")


def test_builders_are_called_as_they_want_it(images: ModuleType) -> None:
    docker = images.building("docker", "x/y:1", ["--target", "cli"])
    assert docker[:4] == ["docker", "build", "--target", "cli"]
    assert docker[-3:] == ["--tag", "x/y:1", str(REPOSITORY)]
    assert images.building("buildah", "x/y:1", [])[:3] == ["buildah", "bud", "--layers"]
    assert images.building("kubelab/image", "x/y:1", ["-q"])[:4] == ["kubelab/image", "x/y:1", str(REPOSITORY), "-q"]


def test_the_data_plane_has_a_base_of_its_own(images: ModuleType) -> None:
    bases = images.Bases("python", "java", "build")
    assert bases.arguments("data-plane") == ["--build-arg", "BASE=java", "--build-arg", "BUILD_BASE=build"]
    assert bases.arguments("cli") == ["--build-arg", "BASE=python", "--build-arg", "BUILD_BASE=build"]
    assert images.Bases().arguments("cli") == [], "the Dockerfile's own"
    assert images.Bases("python").arguments("data-plane") == [
        "--build-arg",
        "BASE=python",
        "--build-arg",
        "BUILD_BASE=python",
    ]


def test_control_images_are_built_without_spark() -> None:
    """The stage with Spark downloads 450 MB: no other image than the data plane's comes from it."""
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    needs = {
        text.split()[2]: {text.split()[0], *re.findall(r"--from=([\w-]+)|from=([\w-]+),", text)} for text in stages
    }
    flat = {
        name: {one for each in asked for one in ([each] if isinstance(each, str) else each) if one}
        for name, asked in needs.items()
    }

    def is_from_spark(stage: str) -> bool:
        return stage == "spark" or any(is_from_spark(needed) for needed in flat.get(stage, ()))

    assert {image for image in REQUIREMENTS.IMAGES if is_from_spark(image)} == {"data-plane"}


@pytest.mark.parametrize("names", [["x/lockstep-cli:1", "x/lockstep-data-plane:1"]])
def test_images_are_pushed_under_their_names(
    images: ModuleType, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(images.subprocess, "run", lambda command, **_: called.append(command))
    images.push("podman", names)
    assert called == [["podman", "push", name] for name in names]


FAKE_BUILDER = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
case "$*" in
    "image inspect --format {{json .RepoDigests}} made/here:1") echo '[]';;
    "image inspect"*) echo '["docker.io/library/python@sha256:%(digest)s"]';;
    "inspect --type image"*) echo 'sha256:%(digest)s';;
esac
"""


@pytest.fixture
def builder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A command that answers as docker or buildah does about images that it pulled."""
    command = tmp_path / str(request.param)
    command.write_text(FAKE_BUILDER % {"digest": "d" * 64})
    command.chmod(0o755)
    return command


@pytest.mark.parametrize("builder", ["docker", "podman", "buildah"], indirect=True)
def test_bases_are_named_by_the_digest_that_their_tag_has_now(images: ModuleType, builder: Path) -> None:
    pinned = images.all_pinned(str(builder), images.Bases())
    assert re.fullmatch(r"docker\.io/library/python@sha256:d{64}", pinned.python)
    assert (builder.parent / "asked").read_text().startswith(f"pull --quiet {images.default_base()}\n")
    assert pinned.arguments("cli") == [
        "--build-arg",
        f"BASE={pinned.python}",
        "--build-arg",
        f"BUILD_BASE={pinned.python}",
    ]
    given = images.Bases(*(f"registry.example.org/{name}@sha256:{'a' * 64}" for name in ("python", "java", "build")))
    assert images.all_pinned(str(builder), given) == given


@pytest.mark.parametrize("builder", ["docker"], indirect=True)
def test_base_that_no_registry_has_stays_and_is_named(
    images: ModuleType, builder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert images.pinned(str(builder), "made/here:1") == "made/here:1"
    assert "images: base made/here:1 has no digest here" in capfd.readouterr().out
    assert images.pinned("kubelab/image", "made/here:1") == "made/here:1"


OF_DEBIAN = """\
Types: deb
# http://snapshot.debian.org/archive/debian/20251117T000000Z
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates

Types: deb
# http://snapshot.debian.org/archive/debian-security/20251117T000000Z
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
"""
FAKE_APT = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
for word in "$@"; do case $word in Dir::Etc::SourceList=*) cat "${word#*=}" > "$(dirname "$0")/sources";; esac; done
"""


@pytest.mark.parametrize(
    ("sources", "is_pinned"),
    [(OF_DEBIAN, True), (OF_DEBIAN.replace("# http://snapshot.debian.org/archive/debian/", "# "), False), ("", False)],
    ids=["of Debian's image", "one place without a moment", "none"],
)
def test_packages_are_those_of_when_the_base_was_made(tmp_path: Path, sources: str, is_pinned: bool) -> None:
    (tmp_path / "apt-get").write_text(FAKE_APT)
    (tmp_path / "apt-get").chmod(0o755)
    if sources:
        (tmp_path / "debian.sources").write_text(sources)
    ran = subprocess.run(
        ["/bin/sh", REPOSITORY / "deploy" / "images" / "install-packages", "gcc", "tini"],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "SOURCES": str(tmp_path / "debian.sources"),
            "LISTS": str(tmp_path / "lists"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[-1] for line in asked] == ["update", "tini"]
    assert asked[1].endswith("install -y --no-install-recommends gcc tini")
    assert ("of today: gcc tini" in ran.stderr) is not is_pinned
    if is_pinned:
        used = (tmp_path / "sources").read_text()
        assert re.findall("URIs: (.*)", used) == re.findall("# (.*)", OF_DEBIAN)
        assert all("Check-Valid-Until=false" in line and "SourceParts=-" in line for line in asked)


DOCUMENTED = """\
'''A module.'''
from __future__ import division


class A:
    '''A class.'''

    async def f(self) -> None:
        '''A method.'''


def divide(a: int, b: int) -> float:
    '''A function.'''
    assert b, "by zero"
    return a / b
"""

DESCRIBED = """\
import module, traceback
docstrings = module.__doc__, module.A.__doc__, module.A.f.__doc__, module.divide.__doc__
try:
    module.divide(1, 0)
except AssertionError as error:
    print(docstrings, error, traceback.extract_tb(error.__traceback__)[-1].lineno)
"""


def test_modules_of_the_images_have_no_docstrings_but_their_assertions(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(DOCUMENTED)
    script = REPOSITORY / "deploy" / "images" / "compile_modules.py"
    subprocess.run([sys.executable, script, "-q", "--invalidation-mode", "unchecked-hash", tmp_path], check=True)
    described = subprocess.run(
        [sys.executable, "-c", DESCRIBED], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert described.stdout == "(None, ' ', None, None) by zero 14\n"


ANNOTATED = """\
from dataclasses import dataclass, fields
from typing import NamedTuple

@dataclass(frozen=True, slots=True)
class A:
    x: int
    y: str = ""
    def f(self, *rest: int, key: str = "k", **more: float) -> "A":
        return A(self.x, key)

class B(NamedTuple):
    z: float

async def divide(a: int, /, b: int) -> float:
    c: float = a / b
    return c
"""
READ = """\
import asyncio, module
one = module.A(1).f(key="d")
hints = [function.__annotations__ for function in (module.A.f, module.divide)]
print(hints, [field.type.__name__ for field in module.fields(one)], one, module.B(2), asyncio.run(module.divide(1, 2)))
"""


def test_functions_of_the_images_have_no_annotations_but_classes_do(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(ANNOTATED)
    script = REPOSITORY / "deploy" / "images" / "compile_modules.py"
    subprocess.run([sys.executable, script, "-q", "--invalidation-mode", "unchecked-hash", tmp_path], check=True)
    read = subprocess.run([sys.executable, "-c", READ], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert read.stdout == "[{}, {}] ['int', 'str'] A(x=1, y='d') B(z=2) 0.5\n"


def test_file_of_another_python_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("print 'of Python 2'\n")
    script = REPOSITORY / "deploy" / "images" / "compile_modules.py"
    ended = subprocess.run([sys.executable, script, "-q", tmp_path], check=False, capture_output=True, text=True)
    assert (ended.returncode, "SyntaxError" in ended.stdout) == (1, True)
