"""The transforms of one run of a slot, by name, as its settings and the driver's plan have them."""

from collections.abc import Iterable, Mapping

from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.transform_settings import SeveralTransforms, TransformSettings
from lockstep_data_plane.core.evaluation import RefusedTransform
from lockstep_data_plane.core.record_transform import RecordTransform, RuleTransform, TopicTransform
from lockstep_data_plane.slot.transform_stage import StageTransform
from lockstep_data_plane.transform.compiled_transform import PlannedTransform
from lockstep_data_plane.transform.evaluation_answer import EvaluationOptions, Filtered, Tombstones
from lockstep_data_plane.transform.python_transform import PythonTransform
from lockstep_data_plane.transform.sql_transform import SqlTransform
from lockstep_rules.statement_outline import COLUMNS
from lockstep_state.rows.data_plane_rows import TransformCount

NOT_PLANNED = "the driver has not compiled it"


def evaluation_options(settings: TransformSettings) -> EvaluationOptions:
    """Return how the records of a transform are evaluated."""
    return EvaluationOptions(tombstones=Tombstones(settings.tombstones), filtered=Filtered(settings.filtered))


def secret_bytes(settings: TransformSettings) -> Mapping[str, bytes]:
    """Return the secrets of a transform as the functions of a statement take them."""
    return {name: secret.encode() for name, secret in settings.secrets.items()}


class SlotTransforms:
    """The transforms of one run of a slot. Nothing connects before the first partition needs it."""

    def __init__(self, settings: FlowSettings, planned: Iterable[PlannedTransform]) -> None:
        """Take the transforms of the settings. One that the driver could not plan is refused."""
        self._settings = settings
        by_name = {transform.name: transform for transform in planned}
        self._evaluated: dict[str, SqlTransform | PythonTransform] = {}
        self._by_name: dict[str, StageTransform] = {}
        for declared in settings.data_plane.transforms:
            plan = by_name.get(declared.name, PlannedTransform(declared.name, refused=NOT_PLANNED))
            transform: RecordTransform = RefusedTransform(declared.name, plan.refused)
            if plan.compiled is not None:
                transform = self._evaluated[declared.name] = SqlTransform(
                    plan.compiled,
                    plan.version,
                    evaluation_options(declared),
                    secret_bytes(declared),
                    connections=declared.threads,
                )
            elif plan.function is not None:
                transform = self._evaluated[declared.name] = PythonTransform(
                    declared.python, plan.function.digest, plan.version, evaluation_options(declared), declared.secrets
                )
            made_columns = COLUMNS if plan.compiled is None else plan.compiled.columns_written
            self._by_name[declared.name] = StageTransform(declared.name, transform, declared.on_error, made_columns)

    def find(self, topic: str) -> TopicTransform | None:
        """Return the transform of a topic of the source; None: its records are copied as they are."""
        if (evaluated := self.find_evaluated(topic)) is not None:
            return evaluated.transform
        rules = self._settings.record_rules(topic)
        return None if rules is None else RuleTransform(rules)

    def find_evaluated(self, topic: str) -> StageTransform | None:
        """Return the transform by which the records of a topic are evaluated before they are judged; None: none is."""
        try:
            settings = self._settings.data_plane.transform_of(topic)
        except SeveralTransforms as exc:
            names = ", ".join(exc.names)
            return StageTransform(names, RefusedTransform(names, str(exc)))
        if settings is None:
            return None
        if dispute := self._settings.transform_dispute(topic):
            return StageTransform(settings.name, RefusedTransform(settings.name, dispute))
        return self._by_name[settings.name]

    def counts(self, held: Mapping[str, int]) -> tuple[TransformCount, ...]:
        """Return what each transform has evaluated in this run. `held` has the bytes that wait, by name."""
        return tuple(
            (
                name,
                transform.version,
                transform.count.records_in,
                transform.count.records_out,
                transform.count.failed,
                round(transform.evaluating_s * 1000),
                held.get(name, 0),
            )
            for name, transform in self._evaluated.items()
        )

    async def close(self) -> None:
        """End the connections to the JVM, and the processes of functions."""
        for transform in self._evaluated.values():
            await transform.close()
