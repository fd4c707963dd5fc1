"""The driver's side of transforms: a statement becomes a `CompiledTransform`.

Java parses, checks and optimises it (`TransformCompiler.java`), because Spark's plans are objects of the JVM.
"""

from typing import Any

from lockstep_data_plane.transform.compiled_transform import (
    CompiledTransform,
    StatementRefused,
    TransformVersion,
)
from lockstep_state.codecs.transform_trial import TrialMistake
from lockstep_state.errors import NeedsDecision

COMPILER = "lockstep.transform.TransformCompiler"


class TransformsUnavailable(NeedsDecision):
    """The error of a JVM that does not have the transforms' jar. The message says what to do."""


class TransformCompiler:
    """A compiler in the JVM of a running SparkContext. Its first statement takes a second or two, later ones less.

    It blocks, and one thread at a time may use it. `settings` are further settings of Spark SQL, for tests.

    Raises:
        TransformsUnavailable: The JVM does not have the jar.
    """

    def __init__(self, context: Any, settings: dict[str, str] | None = None) -> None:
        java_class = getattr(context._jvm, COMPILER)
        try:
            self._java = java_class(context._jsc, settings) if settings else java_class(context._jsc)
        except TypeError as exc:
            raise TransformsUnavailable(
                "Spark's JVM has no transforms: `spark.jars` has to name lockstep-transform.jar"
            ) from exc

    def compile(self, statement: str) -> CompiledTransform:
        """Return the compiled statement. Raises StatementRefused with everything that is wrong with it."""
        compilation = self._java.compile(statement)
        if findings := tuple(_mistake(java) for java in compilation.getFindings()):
            raise StatementRefused(findings)
        version = TransformVersion.of(
            statement,
            compilation.getCanonicalText(),
            self._java.getPinnedSettings(),
            spark=self._java.getSparkVersion(),
            java=self._java.getJavaMajor(),
            jar=self._java.getJarVersion(),
        )
        return CompiledTransform(
            statement,
            bytes(compilation.getStages()),
            frozenset(compilation.getColumnsRead()),
            frozenset(compilation.getColumnsWritten()),
            tuple(compilation.getSecrets()),
            version,
            bool(compilation.hasFilter()),
        )


def _mistake(java: Any) -> TrialMistake:
    return TrialMistake(
        java.code(),
        java.line(),
        java.column(),
        java.fragment(),
        java.message(),
        java.condition(),
        java.suggestion(),
    )
