"""When Spark's JVM is started with a class-data archive, and with which."""

from pathlib import Path

import pytest

from lockstep_data_plane.spark import class_archive
from lockstep_data_plane.spark.class_archive import ArchiveContent, archive_file, find_archive
from lockstep_data_plane.spark.conf import JAVA_OPTIONS, with_archive

ARCHIVE = Path("/opt/lock step/share/spark.jsa")


def java_with(folder: Path, release: str) -> Path:
    """A `java` that never runs, beside its release file."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(release)
    java = folder / "bin" / "java"
    java.touch()
    return java


def test_archive_is_added_behind_the_other_options_of_the_jvm() -> None:
    options = with_archive({JAVA_OPTIONS: "-Xss512k", "spark.master": "local[3]"}, ARCHIVE)
    assert options == {
        JAVA_OPTIONS: f'-Xss512k "-XX:SharedArchiveFile={ARCHIVE}" -Xshare:auto -Xlog:cds=off',
        "spark.master": "local[3]",
    }


@pytest.mark.parametrize(
    "option",
    ["-Xshare:off", "-XX:SharedArchiveFile=/x.jsa", "-XX:ArchiveClassesAtExit=/x", "-XX:+AutoCreateSharedArchive"],
)
def test_options_about_an_archive_are_left_alone(option: str) -> None:
    chosen = {JAVA_OPTIONS: f"-Xss512k {option}"}
    assert with_archive(chosen, ARCHIVE) == chosen
    assert with_archive({}, ARCHIVE, f"-Da=b {option}") == {}


def test_without_an_archive_the_options_stay() -> None:
    assert with_archive({JAVA_OPTIONS: "-Xss512k"}, None) == {JAVA_OPTIONS: "-Xss512k"}


def test_each_java_and_each_spark_has_an_archive_of_its_own(tmp_path: Path) -> None:
    java = java_with(tmp_path / "a", 'JAVA_VERSION="17.0.15"')
    files = {
        archive_file(java, "4.3.0", "/site/pyspark", tmp_path),
        archive_file(java, "4.3.1", "/site/pyspark", tmp_path),
        archive_file(java, "4.3.0", "/elsewhere/pyspark", tmp_path),
        archive_file(java_with(tmp_path / "b", 'JAVA_VERSION="17.0.15"'), "4.3.0", "/site/pyspark", tmp_path),
    }
    (tmp_path / "a" / "release").write_text('JAVA_VERSION="17.0.16"')
    files.add(archive_file(java, "4.3.0", "/site/pyspark", tmp_path))
    files.add(archive_file(java, "4.3.0", "/site/pyspark", tmp_path, ArchiveContent.STATEMENT))
    assert len(files) == 6
    assert {file.parent for file in files} == {tmp_path}


def test_jvm_with_statements_has_an_archive_of_its_own_or_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that evaluates none does without: the classes of Spark SQL would take 80 MB of memory."""
    java_with(tmp_path, 'JAVA_VERSION="17.0.1"')
    environment = {"JAVA_HOME": str(tmp_path)}
    monkeypatch.setattr(class_archive, "own_archive_file", lambda java, content: tmp_path / f"{content.value}.jsa")
    files = {content: tmp_path / f"{content.value}.jsa" for content in ArchiveContent}
    assert find_archive(environment, evaluates=True) is None
    files[ArchiveContent.STATEMENT].touch()
    assert find_archive(environment) is None
    assert find_archive(environment, evaluates=True) == files[ArchiveContent.STATEMENT]
    files[ArchiveContent.JOB].touch()
    assert find_archive(environment) == files[ArchiveContent.JOB]
    assert find_archive(environment, evaluates=True) == files[ArchiveContent.STATEMENT]
    files[ArchiveContent.STATEMENT].unlink()
    assert find_archive(environment, evaluates=True) == files[ArchiveContent.JOB]


def test_archive_of_another_java_is_not_found(tmp_path: Path) -> None:
    java_with(tmp_path, 'JAVA_VERSION="17.0.1"')
    assert find_archive({"JAVA_HOME": str(tmp_path)}) is None
    assert find_archive({"JAVA_HOME": str(tmp_path / "nowhere")}) is None
