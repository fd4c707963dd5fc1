"""What is installed for the Python that runs `lockstep`: services, Spark. Nothing of it is imported."""

import importlib.util
from collections.abc import Iterable

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.services import module_name


def spark_version() -> str:
    """Of PySpark. "": it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def require_services(path: object, names: Iterable[str]) -> None:
    """Raises CannotUse with a sentence that names the services that are not installed. `path`: of the configuration."""
    missing = [name for name in names if importlib.util.find_spec(module_name(name)) is None]
    if missing:
        raise CannotUse(
            f"{path} needs {', '.join(missing)}, which this Python does not have: "
            "install lockstep-kafka[all] from the requirements file of a release"
        )
