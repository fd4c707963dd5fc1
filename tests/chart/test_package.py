"""The chart as it is published: packaged, linted, and with the metadata that Chart.yaml has."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, NEEDS_HELM, rendered, run

pytestmark = NEEDS_HELM

MINIMAL = CHART / "ci" / "minimal-values.yaml"
SIGNER = "mirrors@example.org"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    ran = run("helm", "package", CHART, "--destination", folder)
    assert ran.returncode == 0, ran.stderr
    (made,) = folder.glob("*.tgz")
    return made


def test_package_is_named_by_its_version(package: Path) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    assert package.name == f"lockstep-{version}.tgz"


def test_package_has_what_an_installation_needs(package: Path) -> None:
    with tarfile.open(package) as archive:
        names = set(archive.getnames())
    needed = {"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "icon.svg", "templates/NOTES.txt"}
    assert {f"lockstep/{name}" for name in needed} <= names
    assert [name for name in names if name.startswith(("lockstep/ci/", "lockstep/tests/"))] == []


def test_lint_of_the_package_finds_nothing(package: Path) -> None:
    for more in ((), ("-f", MINIMAL)):
        ran = run("helm", "lint", "--strict", package, *more)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "[INFO]" not in ran.stdout, "an icon that is missing is reported so"


def test_package_shows_the_metadata_of_the_chart(package: Path) -> None:
    shown = run("helm", "show", "chart", package)
    assert shown.returncode == 0, shown.stderr
    assert yaml.safe_load(shown.stdout) == yaml.safe_load((CHART / "Chart.yaml").read_text())


def test_package_renders_as_the_folder(package: Path) -> None:
    assert rendered(MINIMAL, chart=package).text == rendered(MINIMAL).text


@pytest.fixture
def keyrings() -> Iterator[tuple[Path, Path]]:
    """Yield the keyrings of a signer and of a reader, as the page on Kubernetes exports them. Sockets need a short
    path."""
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder:
        environment = {**os.environ, "GNUPGHOME": folder}

        def gpg(*arguments: str) -> bytes:
            command = ["gpg", "--batch", "--quiet", *arguments]
            return subprocess.run(command, env=environment, check=True, capture_output=True).stdout

        try:
            gpg("--passphrase", "", "--quick-generate-key", f"Test <{SIGNER}>", "rsa2048", "sign", "never")
            secret, public = Path(folder, "exported-secret.gpg"), Path(folder, "exported.gpg")
            secret.write_bytes(gpg("--export-secret-keys"))
            public.write_bytes(gpg("--export"))
            yield secret, public
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False)


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not here")
def test_signed_package_is_verified_and_a_changed_one_is_refused(keyrings: tuple[Path, Path], tmp_path: Path) -> None:
    secret, public = keyrings
    signed = run("helm", "package", "--sign", "--key", SIGNER, "--keyring", secret, CHART, "--destination", tmp_path)
    assert signed.returncode == 0, signed.stderr
    (made,) = tmp_path.glob("*.tgz")
    verified = run("helm", "verify", made, "--keyring", public)
    assert verified.returncode == 0, verified.stderr
    assert SIGNER in verified.stdout
    with made.open("ab") as archive:
        archive.write(b"more")
    assert "does not match" in run("helm", "verify", made, "--keyring", public).stderr
