"""The build of the transforms' jar, up to the compiler."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.kafka_jars import read_list

ROOT = Path(__file__).resolve().parents[4] / "services" / "data-plane"


@pytest.fixture
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("transform_jar", ROOT / "transform_jar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    package = tmp_path / "java" / "lockstep" / "transform"
    package.mkdir(parents=True)
    (package / "A.java").write_text("class A { }")
    (package / "names.txt").write_text("abs\n")
    return tmp_path


def test_a_jar_of_these_sources_is_not_compiled_again(builder: ModuleType, sources: Path) -> None:
    jar = sources / builder.JAR
    files = sorted((sources / "java").rglob("*.*"))
    builder._write(jar, {builder.VERSION: builder._source_hash(sources, files).encode()})
    assert builder.build(sources, {"PATH": ""}) == jar
    (files[0]).write_text("class A { int changed; }")
    with pytest.raises(builder.NotCompiled, match="Java 17 or newer is needed"):
        builder.build(sources, {"PATH": ""})


def test_what_is_missing_is_said(builder: ModuleType, sources: Path, tmp_path: Path) -> None:
    with pytest.raises(builder.NotCompiled, match="has no jars of Spark"):
        builder.build(sources, {"LOCKSTEP_SPARK_JARS": str(tmp_path)})


def test_a_jar_is_the_same_whenever_it_is_written(builder: ModuleType, tmp_path: Path) -> None:
    contents = {"b/B.class": b"\xca\xfe", "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", "a/A.class": b"x"}
    one, other = tmp_path / "one.jar", tmp_path / "other.jar"
    builder._write(one, contents)
    builder._write(other, dict(reversed(contents.items())))
    assert one.read_bytes() == other.read_bytes()
    assert zipfile.ZipFile(one).namelist() == ["META-INF/MANIFEST.MF", "a/A.class", "b/B.class"]


def test_eclipse_s_compiler_is_the_one_that_the_operator_is_built_with(builder: ModuleType) -> None:
    listed = Path(__file__).resolve().parents[4] / "tests" / "support" / "spark-operator-jars.sha256"
    [ecj] = [jar for jar in read_list(listed.read_text()) if jar.artifact == "ecj"]
    assert (ecj.file_name, ecj.sha256) == (builder.ECJ, builder.ECJ_SHA256)


def test_the_lists_of_names_are_sorted_and_no_name_is_in_two(builder: ModuleType) -> None:
    folder = ROOT / "java" / "lockstep" / "transform"
    lists = {name: (folder / f"{name}.txt").read_text().splitlines() for name in
             ("functions-allowed", "functions-refused", "expressions-allowed")}  # fmt: skip
    for names in lists.values():
        assert names == sorted(set(names))
    assert not set(lists["functions-allowed"]) & set(lists["functions-refused"])
