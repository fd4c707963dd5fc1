"""Whether there is a Java for Spark, and the sentence when there is none."""

from pathlib import Path

import pytest

from lockstep_runtime.util.java import major_version, missing_java, version_text


@pytest.mark.parametrize(
    ("text", "version", "whole"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17, "17.0.15"),
        ('java version "1.8.0_392"', 8, "1.8.0_392"),
        ('openjdk version "21" 2023-09-19', 21, "21"),
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="25.0.1"\n', 25, "25.0.1"),
        ("no such thing", None, ""),
    ],
)
def test_the_version_is_read_from_both_texts(text: str, version: int | None, whole: str) -> None:
    assert major_version(text) == version
    assert version_text(text) == whole


def java_home(folder: Path, release: str) -> dict[str, str]:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (folder / "release").write_text(release)
    return {"JAVA_HOME": str(folder), "PATH": ""}


@pytest.mark.parametrize(
    ("release", "texts"),
    [
        ('JAVA_VERSION="17.0.1"\n', ()),
        ('JAVA_VERSION="11.0.2"\n', ("is version 11", "17 or newer")),
        ("", ("does not say its version",)),
    ],
)
def test_java_that_spark_cannot_use_is_named(tmp_path: Path, release: str, texts: tuple[str, ...]) -> None:
    sentence = missing_java(java_home(tmp_path, release))
    assert bool(sentence) == bool(texts)
    assert all(text in str(sentence) for text in texts)


@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
def test_missing_java_is_one_sentence_with_the_remedy(tmp_path: Path, variable: str) -> None:
    sentence = missing_java({"PATH": "/usr/bin", variable: str(tmp_path)})
    assert sentence is not None
    assert ("none on PATH" if variable == "PATH" else f"JAVA_HOME={tmp_path}") in sentence
    assert "apt install" in sentence
    assert "\n" not in sentence
