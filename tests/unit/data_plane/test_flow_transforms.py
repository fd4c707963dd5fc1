"""What the driver makes of the transforms of a flow: plans for slots, and rows."""

from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_data_plane.spark.flow_transforms import plan_transform, transform_row
from lockstep_data_plane.transform.compiled_transform import CompiledTransform, PlannedTransform, TransformVersion
from lockstep_rules.filters import NameFilter

VERSION = TransformVersion("digest", "4.3.0", 17, "jar")


def settings(**secrets: str) -> TransformSettings:
    return TransformSettings(name="pii", topics=NameFilter(("t",)), sql="SELECT * FROM records", secrets=secrets)


def compiled(*secrets: str) -> CompiledTransform:
    return CompiledTransform(
        "SELECT * FROM records", b"stages", frozenset({"value"}), frozenset({"value", "key"}), secrets, VERSION
    )


def test_a_plan_has_a_version_and_its_row_no_secret() -> None:
    plan = plan_transform(settings(salt="very-salty"), compiled("salt"))
    assert plan.compiled is not None
    assert plan.version
    assert not plan.refused
    row = transform_row(settings(salt="very-salty"), plan)
    assert (row.key(), row.transform_version, row.secrets, row.written) == (
        "transform/pii",
        plan.version,
        ("salt",),
        ("key", "value"),
    )
    assert (row.spark, row.java, row.jar) == ("4.3.0", 17, "jar")
    assert b"very-salty" not in row.encode_value()
    assert "very-salty" not in repr(plan)


def test_another_secret_is_another_version() -> None:
    versions = {plan_transform(settings(salt=salt), compiled("salt")).version for salt in ("a", "b")}
    assert len(versions) == 2


def test_a_missing_secret_is_refused_by_its_key() -> None:
    plan = plan_transform(settings(salt="x"), compiled("salt", "card"))
    assert plan.compiled is None
    assert plan.refused == "it needs lockstep.transform.pii.secret.card"
    assert "lockstep.transform.pii.salt" in plan_transform(settings(), compiled("salt")).refused
    assert transform_row(settings(), plan).refused == plan.refused


def test_the_row_of_what_was_not_compiled_says_why() -> None:
    row = transform_row(settings(), PlannedTransform("pii", refused="line 1, column 3: no"))
    assert (row.refused, row.transform_version, row.statement) == ("line 1, column 3: no", "", "SELECT * FROM records")
