"""`lockstep version`: the versions of Lockstep, Python, Spark and Java on this machine."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.options import output_option
from lockstep_cli.rendering.result import print_result

if TYPE_CHECKING:
    from rich.console import RenderableType

HELP = """\
Print the versions of Lockstep, of its Python, and of the Spark and the Java that it would start. No cluster is asked.

Spark is installed with lockstep-kafka[all]. Only the data plane needs it, and Java. JAVA_HOME counts first, then PATH.

\b
Examples:
  lockstep version
  lockstep version --output json
"""

EXIT_CODES = """\b
Exit codes:
  0  the versions are printed, also if Spark or Java is missing
  2  the arguments cannot be used"""


@dataclass(frozen=True, slots=True)
class InstalledVersions:
    """The installed versions.

    `spark` is "" if it is not installed. `java_path` is "" if there is no Java. `java` is "" if that Java does not name
    its version.
    """

    lockstep: str
    python: str
    spark: str
    java: str
    java_path: str

    def as_json(self) -> dict[str, str | None]:
        """Return what `--output json` prints, with null for what is not there."""
        return {name: version or None for name, version in asdict(self).items()}

    def as_table(self) -> "RenderableType":
        """Return a line for each program."""
        from lockstep_cli.rendering.table import facts

        java = f"{self.java or 'unknown version'} at {self.java_path}" if self.java_path else "not found"
        spark = self.spark or "not installed"
        return facts(("lockstep", self.lockstep), ("Python", self.python), ("Spark", spark), ("Java", java))


@click.command(
    cls=CliCommand,
    name="version",
    short_help="Print the versions of Lockstep, Python, Spark, Java.",
    help=HELP,
    epilog=EXIT_CODES,
)
@output_option
def command(output: str) -> None:
    import os

    versions = read_versions(os.environ)
    print_result(output, [versions.as_table()], versions.as_json)


def read_versions(environment: Mapping[str, str]) -> InstalledVersions:
    """Read the installed versions. A JVM is started only if its folder does not name the version."""
    import importlib.metadata
    import platform

    from lockstep_ops.installation import spark_version
    from lockstep_runtime.util.java import find_java, java_release

    java = find_java(environment)
    return InstalledVersions(
        lockstep=importlib.metadata.version("lockstep-kafka-cli"),
        python=platform.python_version(),
        spark=spark_version(),
        java="" if java is None else java_release(java),
        java_path="" if java is None else str(java),
    )
