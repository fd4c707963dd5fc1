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


def test_java_17_is_enough(tmp_path: Path) -> None:
    assert missing_java(java_home(tmp_path, 'JAVA_VERSION="17.0.1"\n')) is None


def test_an_older_java_is_named_with_its_version(tmp_path: Path) -> None:
    sentence = missing_java(java_home(tmp_path, 'JAVA_VERSION="11.0.2"\n'))
    assert sentence is not None
    assert "is version 11" in sentence
    assert "17 or newer" in sentence


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    sentence = missing_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert sentence is not None
    assert f"JAVA_HOME={tmp_path}" in sentence


def test_missing_java_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    sentence = missing_java({"PATH": str(tmp_path)})
    assert sentence is not None
    assert "none on PATH" in sentence
    assert "apt install" in sentence
    assert "\n" not in sentence


def test_a_java_that_does_not_answer_is_no_java(tmp_path: Path) -> None:
    sentence = missing_java(java_home(tmp_path, ""))
    assert sentence is not None
    assert "does not say its version" in sentence
