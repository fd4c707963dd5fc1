"""Compiles the JVM's side of transforms (`java/`) into the jar that lies beside `lockstep_data_plane.transform.jar`.

It takes `javac`, or else the compiler of Eclipse, which any Java runs and which is fetched once from Maven Central. The
classes that it compiles against are Spark's, from the `pyspark` of this Python or from `LOCKSTEP_SPARK_JARS`. The jar
is the same, byte for byte, for the same sources and the same compiler.

`python services/data-plane/transform_jar.py` compiles it in a checkout, unless it is there. Standard library only.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent
JAR = Path("src", "lockstep_data_plane", "transform", "lockstep-transform.jar")
RELEASE = "17"
VERSION = "lockstep/transform/version.txt"
"""The entry with the hash of the sources, which is part of the version of every transform."""

ECJ = "ecj-3.33.0.jar"
ECJ_SHA256 = "f7686c4960cf70c2ebc5c500a73a8cfc04541b730c18f1c5c21329889b137f45"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
LONG_AGO = (2020, 2, 2, 0, 0, 0)

SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class NotCompiled(Exception):
    """The error of a jar that could not be compiled. The message says what is missing, or what the compiler said."""


def build(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the jar, compiled from the sources under `root` unless it is there.

    Raises:
        NotCompiled: There is no Spark, no Java, or no compiler, or the sources do not compile.
    """
    jar, sources = root / JAR, sorted((root / "java").rglob("*.java"))
    resources = sorted((root / "java").rglob("*.txt"))
    version = _source_hash(root, [*sources, *resources])
    if _version_of(jar) == version:
        return jar
    spark = _spark_jars(environment)
    with tempfile.TemporaryDirectory(prefix="lockstep-transform-") as folder:
        classes = Path(folder, "classes")
        classes.mkdir()
        _compile(sources, classes, spark, root, environment, Path(folder))
        contents = {file.relative_to(classes).as_posix(): file.read_bytes() for file in classes.rglob("*.class")}
        contents |= {file.relative_to(root / "java").as_posix(): file.read_bytes() for file in resources}
        contents |= {VERSION: version.encode(), "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n"}
        _write(jar, contents)
    return jar


def _source_hash(root: Path, files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _version_of(jar: Path) -> str:
    """Return the version of a jar that is there; "": there is none."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(VERSION).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _spark_jars(environment: Mapping[str, str]) -> Path:
    if named := environment.get("LOCKSTEP_SPARK_JARS"):
        folder = Path(named)
    else:
        pyspark = importlib.util.find_spec("pyspark")
        if pyspark is None or pyspark.origin is None:
            raise NotCompiled(
                "the transforms' jar is compiled against Spark's: install pyspark beside hatchling and build without "
                "isolation, or name the folder of Spark's jars in LOCKSTEP_SPARK_JARS"
            )
        folder = Path(pyspark.origin).parent / "jars"
    if not list(folder.glob("spark-catalyst_*.jar")):
        raise NotCompiled(f"{folder} has no jars of Spark")
    return folder


def _compile(
    sources: Sequence[Path], into: Path, spark: Path, root: Path, environment: Mapping[str, str], scratch: Path
) -> None:
    java = _program("java", environment)
    javac = _program("javac", environment)
    options = ["--release", RELEASE, "-proc:none", "-g:source,lines", "-encoding", "UTF-8", "-d", str(into)]
    files = [str(file) for file in sources]
    if javac is not None:
        classpath = str(spark / "*")
        flags = [f"-J{flag}" for flag in SMALL_JVM]
        command = [javac, *flags, "-nowarn", *options, "-cp", classpath, *files]
    elif java is not None:
        classpath = os.pathsep.join(str(jar) for jar in sorted(spark.glob("*.jar")))
        ecj = _eclipse_compiler(java, spark, root, environment, scratch)
        main = "org.eclipse.jdt.internal.compiler.batch.Main"
        command = [java, *SMALL_JVM, "-cp", str(ecj), main, "-nowarn", *options, "-cp", classpath, *files]
    else:
        raise NotCompiled(
            f"Java {RELEASE} or newer is needed to compile the transforms' jar, and there is none: install one, or "
            "point JAVA_HOME at it"
        )
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotCompiled(f"{Path(command[0]).name} ended with {ran.returncode}: {(ran.stderr or ran.stdout)[-4000:]}")


def _program(name: str, environment: Mapping[str, str]) -> str | None:
    if home := environment.get("JAVA_HOME"):
        return shutil.which(name, path=str(Path(home, "bin")))
    return shutil.which(name, path=environment.get("PATH"))


def _eclipse_compiler(java: str, spark: Path, root: Path, environment: Mapping[str, str], scratch: Path) -> Path:
    """Return Eclipse's compiler, fetched through the Ivy that pyspark carries if it is not in the checkout's cache."""
    checkout = root.parent.parent
    cache = checkout / ".cache" / "ecj" if (checkout / ".git").exists() else scratch
    ecj = cache / ECJ
    if not ecj.exists():
        _retrieve(java, spark, cache, environment, scratch)
    digest = hashlib.sha256(ecj.read_bytes()).hexdigest() if ecj.exists() else "none"
    if digest != ECJ_SHA256:
        ecj.unlink(missing_ok=True)
        raise NotCompiled(
            f"there is no javac, and {ECJ} could not be fetched from Maven Central (its SHA-256 is {digest}): install "
            "a JDK, or name another repository in LOCKSTEP_MAVEN_URL"
        )
    return ecj


def _retrieve(java: str, spark: Path, into: Path, environment: Mapping[str, str], scratch: Path) -> None:
    ivy = sorted(spark.glob("ivy-*.jar"))
    if not ivy:
        raise NotCompiled("there is no javac, and this Spark carries no Ivy to fetch Eclipse's compiler: install a JDK")
    settings = scratch / "ivysettings.xml"
    repository = environment.get("LOCKSTEP_MAVEN_URL", MAVEN_CENTRAL)
    settings.write_text(
        f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(scratch / "ivy"))}/>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="false" root={quoteattr(repository)}/></resolvers>
</ivysettings>"""
    )
    subprocess.run(
        [
            *(java, *SMALL_JVM, "-cp", str(ivy[-1]), "org.apache.ivy.Main", "-settings", str(settings)),
            *("-dependency", "org.eclipse.jdt", "ecj", ECJ.removeprefix("ecj-").removesuffix(".jar")),
            *("-retrieve", f"{into}/[artifact]-[revision].[ext]"),
        ],
        capture_output=True,
        check=False,
    )


def _write(jar: Path, contents: Mapping[str, bytes]) -> None:
    """Write a jar whose bytes depend on its contents alone."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    unfinished = jar.with_suffix(".tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents, key=lambda name: (not name.startswith("META-INF/"), name)):
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, contents[name])
    unfinished.replace(jar)


def main() -> None:
    """Compile the jar of this checkout. Exits with a sentence if it cannot be compiled."""
    try:
        build()
    except NotCompiled as problem:
        sys.exit(f"setup: {problem}")


if __name__ == "__main__":
    main()
