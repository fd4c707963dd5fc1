"""The transforms of one flow, which its driver compiles before it starts slots."""

from dataclasses import dataclass, field, replace

from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_config.keys.transform_keys import secret_key
from lockstep_data_plane.slot.slot_transforms import evaluation_options, secret_bytes
from lockstep_data_plane.spark.session import SparkSession
from lockstep_data_plane.transform.compiled_transform import CompiledTransform, PlannedTransform, StatementRefused
from lockstep_data_plane.transform.compiler import TransformsUnavailable
from lockstep_data_plane.transform.evaluation_answer import TransformConnectionLost
from lockstep_data_plane.transform.python_evaluator import PythonEvaluator, PythonFunction
from lockstep_data_plane.transform.sql_transform import version_of, version_with
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.errors import NeedsDecision
from lockstep_state.rows.state_rows import Transform

FUNCTION_STARTS = 3
"""The number of processes that may end before a function in Python is given up."""


@dataclass
class FlowTransforms:
    """The transforms of a flow as its slots get them. Each statement is compiled once in a process."""

    ctx: FlowContext
    spark: SparkSession
    planned: tuple[PlannedTransform, ...] = ()
    _compiled: dict[str, tuple[TransformSettings, PlannedTransform]] = field(default_factory=dict)

    async def compile(self) -> None:
        """Compile what was not compiled yet, and write a row of each transform.

        A transform that does not compile is reported. Its topics are not copied then.

        Raises:
            ClusterError: A row could not be written.
            SparkNotStarted: Spark has ended.
        """
        transforms = self.ctx.settings.data_plane.transforms
        planned = [await self._plan(settings) for settings in transforms]
        self.planned = tuple(planned)
        for settings, plan in zip(transforms, planned, strict=True):
            await self.ctx.state.write_if_changed(transform_row(settings, plan))

    async def _plan(self, settings: TransformSettings) -> PlannedTransform:
        before, plan = self._compiled.get(settings.name, (None, None))
        if plan is None or before != settings:
            plan = await self._compile(settings)
            if plan.refused:
                self.ctx.log.warn(f"transform {settings.name}", f"is not compiled: {plan.refused}")
            self._compiled[settings.name] = settings, plan
        return plan

    async def _compile(self, settings: TransformSettings) -> PlannedTransform:
        if settings.python:
            return await plan_function(settings)
        try:
            compiled = await self.spark.compile_statement(settings.sql)
        except (StatementRefused, TransformsUnavailable) as exc:
            return PlannedTransform(settings.name, refused=str(exc))
        return plan_transform(settings, compiled)


async def plan_function(settings: TransformSettings) -> PlannedTransform:
    """Return a transform in Python with the version that its function has on this machine."""
    options = evaluation_options(settings)
    evaluator = PythonEvaluator(PythonFunction(settings.python, settings.secrets), options)
    try:
        await _start(evaluator)
    except (NeedsDecision, TransformConnectionLost) as exc:
        return PlannedTransform(settings.name, refused=str(exc))
    finally:
        await evaluator.close()
    version = version_with(evaluator.version.digest, options, secret_bytes(settings))
    return PlannedTransform(settings.name, version, function=evaluator.version)


async def _start(evaluator: PythonEvaluator) -> None:
    for attempt in range(1, FUNCTION_STARTS + 1):
        try:
            return await evaluator.start()
        except TransformConnectionLost:
            if attempt == FUNCTION_STARTS:
                raise


def plan_transform(settings: TransformSettings, compiled: CompiledTransform) -> PlannedTransform:
    """Return a compiled transform with its version, unless a secret that it names is missing."""
    secrets = secret_bytes(settings)
    if missing := [secret_key(settings.name, name) for name in compiled.secrets if not secrets.get(name)]:
        return PlannedTransform(settings.name, refused=f"it needs {', '.join(missing)}")
    version = version_of(compiled, evaluation_options(settings), secrets)
    return PlannedTransform(settings.name, version, compiled)


def transform_row(settings: TransformSettings, plan: PlannedTransform) -> Transform:
    """Return the row of a transform."""
    row = Transform(
        name=settings.name,
        transform_version=plan.version,
        statement=settings.sql,
        function=settings.python,
        tombstones=settings.tombstones,
        filtered=settings.filtered,
        refused=plan.refused,
    )
    if plan.function is not None:
        function = plan.function
        secrets = tuple(sorted(settings.secrets))
        return replace(row, secrets=secrets, package=function.package, python=function.python, pyarrow=function.pyarrow)
    if (compiled := plan.compiled) is None:
        return row
    return replace(
        row,
        secrets=compiled.secrets,
        written=tuple(sorted(compiled.columns_written)),
        spark=compiled.version.spark,
        java=compiled.version.java,
        jar=compiled.version.jar,
    )
